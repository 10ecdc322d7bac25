"""Questions asked of models, one a file."""
