"""What a trained encoding does."""
