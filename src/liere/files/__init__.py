"""Files: atomic writes, and reads with limits and checks."""
