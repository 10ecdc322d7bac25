"""`python -m liere_command` is `liere`."""

import sys

from liere_command import main

sys.exit(main())
