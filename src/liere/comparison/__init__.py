"""Comparisons: which runs there are, and how they are trained and evaluated, several at a time."""
