"""Benchmarks of time and memory, one question per file."""
