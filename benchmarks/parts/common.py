"""What the measurements of the parts share: W1's policy with a full batch."""

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
    """Runs the steps of a policy one after another."""

    policy: Policy

    def plan(self) -> Plan:
        """Plan a step and return its plan."""
        plan = self.policy.plan(0.0)
        assert isinstance(plan, Plan)
        return plan

    def one(self) -> Plan:
        """Plan and commit one step."""
        plan = self.plan()
        self.policy.commit(plan)
        return plan


def endless(index: int, prompt_tokens: int = 16) -> Job:
    """Return a request that never ends."""
    return Job(Request(str(index), 0.0, prompt_tokens, ENDLESS_TOKENS), index)


def full_batch(*, prefix_caching: bool = False, asynchronous: bool = False) -> Steps:
    """Return W1's policy in which requests that never end decode in all seats but one."""
    cell = Cell("parts", lambda _: [], blocks=ENDLESS_BLOCKS, prefix_caching=prefix_caching, asynchronous=asynchronous)
    steps = Steps(cell.policy())
    for index in range(SEATS - 1):
        steps.policy.add(endless(index))
    while steps.one().batch.prefill:
        pass
    return steps
