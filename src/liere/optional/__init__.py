"""Packages that are not installed with `liere` itself."""
