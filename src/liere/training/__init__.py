"""Training of runs: optimizer and schedule, data, logs, checkpoints and stop requests."""
