"""What a run is: its configuration, folder, records, checkpoints and model."""
