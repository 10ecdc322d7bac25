"""Comparisons: plan the runs, then train and evaluate them, several at a time."""
