"""The commands of `liere`, one a file: `HELP`, `add_arguments` and `run`."""
