"""Notices a policy that gets nowhere: it is asked for ever, and no request gets a token.

Built-in policies cannot do that. Rules and policies of one's own can, and then the run ends with an error instead of
never.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from simqueue.errors import RunError
from simqueue.schedulers.base import Plan, Policy
from simqueue.simulation.replica_log import ReplicaLog

PATIENCE: Final = 1000
"""Plans in a row that give no request a token, before it is asked whether that can still end."""
MOST_WAKES: Final = 20_000
"""Times in a row that a policy can ask for a later time before it plans a step or anything happens from outside."""
MANY_REPEATS: Final = 1 << 16
"""Up to this many repeats of a plan cost little, so that only more are compared with what requests can need."""


class Progress:
    """Counts what a policy did since it last served a request.

    Parameters
    ----------
    policy, recorder : Policy, ReplicaLog

    Attributes
    ----------
    fruitless : int
        Plans since the last token.
    wakes : int
        Times that the policy was asked since the last step or change from outside.
    states : set of hashable
        States of the policy at preempting steps since the last token or change from outside.
    """

    def __init__(self, policy: Policy, recorder: ReplicaLog) -> None:
        self.fruitless = 0
        self.wakes = 0
        self.states: set[Hashable] = set()
        self._patience = PATIENCE
        self._policy = policy
        self._recorder = recorder

    def failure(self, text: str) -> RunError:
        """Return an error about an answer of the policy: its class, then `text`, which begins with the method."""
        return RunError(f"{type(self._policy).__name__}.{text}")

    def seen_before(self) -> bool:
        """Return whether the policy's state at this preempting step was seen since the last token or change."""
        state = self._policy.state()
        if state in self.states:
            return True
        self.states.add(state)
        return False

    def woke(self, then_s: float, now_s: float) -> None:
        """Count a time at which the policy was asked; from the last step that was run since `then_s`, if any."""
        self.wakes = self.wakes + 1 if now_s == then_s else 0
        if self.wakes > MOST_WAKES:
            asked = f"plan was asked {self.wakes} times in a row, up to {now_s:g} s, and planned no step"
            raise self.failure(f"{asked}: give None, or Later with the time from which a step can run")

    def gave_no_token(self, plan: Plan, now_s: float) -> None:
        """Count a plan that gives no token; in a row there cannot be more of them than the requests have tokens."""
        self.fruitless = 0 if plan.finishing or plan.failed else self.fruitless + 1
        if self.fruitless <= self._patience:
            return
        self._patience = PATIENCE + 2 * self._recorder.tokens_inside()
        if self.fruitless > self._patience:
            given = f"plan gives {self.fruitless} plans in a row, up to {now_s:g} s, and no request a token"
            raise self.failure(f"{given}: this would never end")

    def check_repeat(self, repeat: int) -> None:
        """Compare many repeats of a plan with the longest output."""
        if repeat > MANY_REPEATS and repeat > (longest := self._recorder.longest_output()):
            raise self.failure(f"plan gives a plan with repeat = {repeat}, but no output is longer than {longest}")
