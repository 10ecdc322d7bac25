"""Readers of data files; they work with tensors and paths and do not depend on configurations."""
