"""Runs: their configuration, folder, records, checkpoints and model."""
