"""Files: written as a whole or not at all, read with limits and checks."""
