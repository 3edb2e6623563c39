"""What holds for the whole suite: every run verifies its invariants, and CI plays the same examples each time."""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings

from simqueue.experiment.runner import CHECK_SWITCH

os.environ[CHECK_SWITCH] = "1"

# studies/ and benchmarks/ are not installed. At the end of the path, so that simqueue is the installed package.
sys.path.append(str(Path(__file__).parents[1]))

# Examples differ in cost by orders of magnitude, so none has a time limit. Outside CI they vary from run to run.
settings.register_profile(
    "suite", deadline=None, derandomize=bool(os.environ.get("CI")), suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "mutation", settings.get_profile("suite"), derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("suite")
