"""Routers that read more than they declare: the run ends with an error, and never with values that cannot be right."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from simqueue.errors import RunError
from simqueue.request import Request
from simqueue.routing import Age, Ranking, Router, Signal, View
from simqueue.schedulers import Policy
from simqueue.settings import Settings
from simqueue.simulation import RunOptions
from simqueue.simulation.apart import shares
from simqueue.simulation.fleet_rules import FleetRules, Part
from simqueue.simulation.simulate_fleet import FleetSimulation
from simqueue.steptime.linear import ConstantStepTime
from simqueue.traffic import Traffic

from ..helpers.playing import make_policy

UNDER_WAY = [Request(str(i), 0.1 * i, 10, 5) for i in range(6)]
QUANTITIES = (
    "running",
    "waiting",
    "kv_used",
    "tokens",
    "in_flight",
    "in_flight_prompt_tokens",
    "in_flight_tokens",
    "free_seats",
    "seen_s",
)
AGED = ("running", "waiting", "kv_used", "tokens")


class Curious(Router):
    """The replica with the least of a quantity; declares nothing that it reads."""

    is_independent = False

    def __init__(self, quantity: str) -> None:
        super().__init__(Settings(), Random(1))
        self._quantity = quantity

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return it."""
        found = {view.number: getattr(view, self._quantity) for view in replicas}
        return Ranking({min(found, key=lambda number: (found[number], number)): 1.0}, "least")


class Lying(Curious):
    """The same, and says that it looks at nothing."""

    is_independent = True


def policy() -> Policy:
    """Return a policy with a pool of 100 blocks of 8 tokens and a budget of 64."""
    keys = {"max_num_seqs": 2, "max_num_batched_tokens": 64, "chunk_tokens": 64}
    made: Policy = make_policy("chunked", keys, blocks=100, block_size=8)
    return made


def parts() -> list[Part]:
    """Return two replicas."""
    return [Part(f"r-{i}", "r", 1.0, policy, ConstantStepTime(0.05), None) for i in range(2)]


def rules(router: Router, ages: dict[Signal, Age]) -> FleetRules:
    """Return the rules of a fleet behind this router."""
    return FleetRules(router=router, random=Random, ages=ages)


@pytest.mark.parametrize("quantity", AGED)
def test_a_signal_with_an_age_must_be_declared(quantity: str) -> None:
    """It would be the present, which the router cannot know."""
    played = FleetSimulation(
        Traffic(UNDER_WAY), parts(), rules(Curious(quantity), {Signal(quantity): Age(0.2)}), RunOptions()
    )
    with pytest.raises(RunError, match=f"reads {quantity}, which has an age: its `reads` must have Signal"):
        played.run()


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_without_an_age_it_is_the_present(quantity: str) -> None:
    """Then there is nothing wrong with it, whatever other signals have an age."""
    other = Signal.KV_USED if quantity != "kv_used" else Signal.TOKENS
    recording = FleetSimulation(Traffic(UNDER_WAY), parts(), rules(Curious(quantity), {other: Age(0.2)}), RunOptions())
    assert list(recording.run().requests["status"]) == ["finished"] * len(UNDER_WAY)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_an_independent_router_reads_nothing(quantity: str) -> None:
    """Its replicas are played one after the other, so there is nothing to read."""
    with pytest.raises(RunError, match=f"the router reads {quantity}, so it is not independent"):
        shares(UNDER_WAY, parts(), rules(Lying(quantity), {}), 2)


@pytest.mark.parametrize(
    ("quantity", "value"), [("block_size", 8), ("kv_tokens", 800), ("max_num_batched_tokens", 64), ("weight", 1.0)]
)
def test_what_replicas_are_is_known_to_all(quantity: str, value: float) -> None:
    """Block size, pool and budget do not depend on what happens."""
    seen: list[float] = []

    class Noting(Lying):
        def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
            seen.extend(getattr(view, self._quantity) for view in replicas)
            return super().rank(request, replicas, now_s)

    shares(UNDER_WAY[:1], parts(), rules(Noting(quantity), {}), 2)
    assert seen == [value, value]
