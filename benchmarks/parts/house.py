"""What the parts are measured on: W1's policy with a full house."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.cells import Cell
from simqueue.request import Job, Request
from simqueue.schedulers import Plan, Policy

ENDLESS_TOKENS = 10**9
ENDLESS_BLOCKS = 10**10
SEATS = 128

Measure = Callable[..., Any]
"""The fixture `benchmark` of pytest-benchmark."""


@dataclass(frozen=True)
class Steps:
    """A policy that is asked for one step after the other."""

    policy: Policy

    def plan(self) -> Plan:
        """Plan a step, without delivering it."""
        plan = self.policy.plan(0.0)
        assert isinstance(plan, Plan)
        return plan

    def one(self) -> Plan:
        """Plan, take and deliver one step."""
        plan = self.plan()
        self.policy.commit(plan)
        return plan


def endless(index: int, prompt_tokens: int = 16) -> Job:
    """Return a request that never ends."""
    return Job(Request(str(index), 0.0, prompt_tokens, ENDLESS_TOKENS), index)


def full_house(*, prefix_caching: bool = False, asynchronous: bool = False) -> Steps:
    """Return W1's policy with all seats but one taken by requests that decode and never end."""
    cell = Cell("parts", lambda _: [], blocks=ENDLESS_BLOCKS, prefix_caching=prefix_caching, asynchronous=asynchronous)
    steps = Steps(cell.policy())
    for index in range(SEATS - 1):
        steps.policy.add(endless(index))
    while steps.one().batch.prefill:
        pass
    return steps
