"""A scenario for tests of fleets, and a router with keys and numbers of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
from pydantic import Field

from simqueue.errors import InputError
from simqueue.request import Request
from simqueue.routing import Age, Ranking, Recovery, Router, Signal, View
from simqueue.scenario import ResolvedPolicy, ResolvedScenario, Scenario, from_mapping
from simqueue.scenario.resolved_fleet import ResolvedFleet
from simqueue.settings import Settings

KEYS: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm",
    "workload": {"requests": [{"arrival_s": 0, "prompt_tokens": 10, "output_tokens": 5}]},
    "policies": {"p": {"scheduler": "chunked", "max_num_seqs": 8}},
}


def scenario(fleet: Any, *flags: str, **policy: Any) -> Scenario:
    """Return the scenario with a fleet of its only policy, which has further keys."""
    own = {**KEYS["policies"]["p"], **policy, "fleet": fleet}
    return from_mapping({**KEYS, "policies": {"p": own}}, flags)


def resolved(fleet: Any, *flags: str, **policy: Any) -> tuple[ResolvedPolicy, ResolvedFleet, ResolvedScenario]:
    """Return the only policy, its fleet and the scenario."""
    found = scenario(fleet, *flags, **policy).resolve()
    (own,) = found.policies
    assert own.fleet is not None
    return own, own.fleet, found


def complaint(fleet: Any, *flags: str, **policy: Any) -> list[str]:
    """Return the lines of the error of a fleet, without the path of the policy."""
    with pytest.raises(InputError) as caught:
        scenario(fleet, *flags, **policy)
    return [line.removeprefix("policies.p.") for line in str(caught.value).splitlines()]


class StickySettings(Settings):
    """Keys of a router that a user could write."""

    limit: int = Field(ge=1, description="a key that must be given")
    share: float = Field(0.5, ge=0, le=1, description="a key with a default")


class Sticky(Router):
    """A router that a user could write, with numbers of its own."""

    Settings: ClassVar[type[Settings]] = StickySettings  # type: ignore[misc]  # its keys are its own
    summary: ClassVar[str] = "always the first replica"
    checked: ClassVar[str] = "nothing; it is for tests"
    ages: ClassVar[Mapping[Signal, Age]] = {Signal.WAITING: Age(0.5, 0.25), Signal.KV_USED: Age(3.0)}
    recovery: ClassVar[Recovery] = Recovery(
        retries=3,
        first_wait_s=0.2,
        wait_factor=3.0,
        longest_wait_s=7.0,
        jitter=0.1,
        check_every_s=9.0,
        check_timeout_s=2.0,
        check_failures=4,
        check_successes=5,
        breaker_failures=6,
        breaker_window_s=11.0,
        breaker_open_s=12.0,
        breaker_successes=7,
        source="sticky 1.0: its manual",
    )

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the first one."""
        return Ranking({replicas[0].number: 1.0}, "first")
