"""Questions asked of a clock (and of the memory), one a file."""
