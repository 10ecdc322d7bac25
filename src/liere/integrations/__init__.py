"""Integrations with models and weights of other libraries."""
