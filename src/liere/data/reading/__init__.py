"""Readers of files that data sets share or that one of them needs; they know tensors and paths, not configurations."""
