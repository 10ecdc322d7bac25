"""Training: configuration, optimiser and schedule, the order of examples, checkpoints, runs."""
