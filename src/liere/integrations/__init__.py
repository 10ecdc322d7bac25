"""Weights and models of other code."""
