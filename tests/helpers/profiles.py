"""How many examples Hypothesis tries: few at a desk (`quick`), many in CI (`thorough`), the same each time there."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

SWITCH = "SIMQUEUE_TEST_PROFILE"
SHARE = int(os.environ.get("SIMQUEUE_TEST_SHARE") or 12)
"""CI tries one in this many of the thorough examples, so that it ends in time; 1 tries them all."""


def register_profiles() -> None:
    """Register all profiles and load the one that the environment names; `quick` by default.

    Examples differ in cost by orders of magnitude, so none has a time limit.
    """
    settings.register_profile("quick", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    quick = settings.get_profile("quick")
    settings.register_profile("thorough", quick, derandomize=True)
    phases = (Phase.explicit, Phase.generate)  # a mutant is killed by the first failure, however long
    settings.register_profile("mutation", quick, derandomize=True, database=None, phases=phases)
    settings.load_profile(os.environ.get(SWITCH) or "quick")


def examples(quick: int, thorough: int | None = None) -> settings:
    """Return a decorator for a property: how many examples it tries, in the thorough profile more if given."""
    in_full = settings.get_current_profile_name() == "thorough"
    return settings(max_examples=max(quick, thorough // SHARE) if in_full and thorough else quick)
