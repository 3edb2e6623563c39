"""``python -m simqueue.conformance FILE...``."""

import sys

from simqueue.conformance.command import main
from simqueue.errors import exit_code

sys.exit(exit_code(main))
