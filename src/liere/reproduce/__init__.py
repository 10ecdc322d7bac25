"""Reproduce the paper's tables and figures: the runs they need, our numbers, and verdicts on the paper's claims."""
