"""Evaluation of trained models: predictions, statistics and summaries."""
