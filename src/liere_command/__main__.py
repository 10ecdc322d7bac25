"""Run the `liere` command as `python -m liere_command`."""

import sys

from liere_command import main

sys.exit(main())
