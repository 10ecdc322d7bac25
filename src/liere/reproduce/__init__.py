"""The paper's tables and figures: which runs they need, what comes out, and whether the paper's claims hold."""
