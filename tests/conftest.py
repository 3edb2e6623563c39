"""One switch for the whole suite: every run verifies its invariants after every step."""

import os

from simqueue.experiment.runner import CHECK_SWITCH

os.environ[CHECK_SWITCH] = "1"
