"""The commands of `liere`, one per file, each with `HELP`, `add_arguments` and `run`."""
