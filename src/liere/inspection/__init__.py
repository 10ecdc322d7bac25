"""Inspection of position encodings."""
