"""Attacks on training runs and on every file that the library reads, one attack per module; see `tools/campaign.py`."""
