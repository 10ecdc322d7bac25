"""Optional dependencies."""
