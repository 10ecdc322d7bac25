"""Attacks on training runs and on every file that the library reads, one per file; `tools/campaign.py` runs them."""
