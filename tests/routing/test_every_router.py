"""What every generic router keeps to, whatever the replicas."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..helpers.profiles import examples
from .replicas import Replica, fleets, made, p_value, replicas, request

LOADS = ["in_flight", "in_flight_prompt_tokens", "in_flight_tokens", "running", "waiting", "running_and_waiting"]
LOADS += ["kv_used", "tokens"]
ALWAYS: list[tuple[str, dict[str, Any]]] = [
    ("random", {}),
    ("round_robin", {}),
    ("weighted", {}),
    ("weighted", {"smooth": True}),
    ("least_outstanding", {}),
    ("least_outstanding", {"ties": "first"}),
    ("least_tokens", {}),
    ("least_tokens", {"count": "all"}),
    ("least_kv", {}),
    ("join_shortest_queue", {}),
    *(("power_of_two", {"by": load}) for load in LOADS),
    *(("power_of_two", {"choices": n}) for n in (1, 3, 50)),
    ("session_affinity", {"points": 5}),
    ("session_affinity", {"points": 5, "load_factor": 1.25}),
    ("prefix_affinity", {"threshold": 0.5}),
    ("prefix_affinity", {"index": "tree"}),
]
ROUTER = st.sampled_from([*ALWAYS, ("central_queue", {})])


@examples(150, 2000)
@given(router=ROUTER, seen=fleets(), seed=st.integers(0, 9))
def test_chances_are_of_healthy_replicas_and_choices_have_chances(
    router: tuple[str, dict[str, Any]], seen: list[Replica], seed: int
) -> None:
    """Chances are positive, add up to 1 and are of healthy replicas only; a choice is one of them, for that reason."""
    one = made(router[0], seed, **router[1])
    ranking = one.rank(request(), seen, 0.0)
    choice = one.choose(request(), seen, 0.0)
    assert choice.reason == ranking.reason
    assert not choice.refused
    if router[0] == "central_queue" and not any(replica.healthy and replica.free_seats for replica in seen):
        assert choice.replica is None
        assert not ranking.chances
        return
    assert sum(ranking.chances.values()) == pytest.approx(1)
    assert min(ranking.chances.values()) > 0
    assert ranking.chances.keys() <= {replica.number for replica in seen if replica.healthy}
    assert choice.replica in ranking.chances


@examples(100, 1000)
@given(router=ROUTER, seen=fleets(), steps=st.lists(st.booleans(), max_size=12))
def test_questions_change_nothing(router: tuple[str, dict[str, Any]], seen: list[Replica], steps: list[bool]) -> None:
    """However often `rank` and `choose` are asked, decisions depend only on what was dispatched."""
    asked_once, asked_often = made(router[0], **router[1]), made(router[0], **router[1])
    for extra in steps:
        if extra:
            asked_often.choose(request(), seen, 0.0)
            asked_often.rank(request(), seen, 0.0)
        ranking = asked_once.rank(request(), seen, 0.0)
        assert asked_often.rank(request(), seen, 0.0) == ranking
        for number in list(ranking.chances)[:1]:
            replica = next(one for one in seen if one.number == number)
            asked_once.dispatched(request(), replica, 0.0)
            asked_often.dispatched(request(), replica, 0.0)


@pytest.mark.parametrize(("kind", "keys"), [*ALWAYS, ("central_queue", {})], ids=str)
def test_choices_have_the_frequencies_of_their_chances(kind: str, keys: dict[str, Any]) -> None:
    """3,000 choices do not differ from the chances (chi-square), with ties, weights and replicas that are down."""
    seen = replicas(
        7,
        weight=[1, 2, 1, 3, 1, 1, 0.5],
        healthy=[True, True, False, True, True, True, True],
        in_flight=[2, 0, 0, 0, 1, 2, 5],
        in_flight_prompt_tokens=[3, 3, 0, 3, 9, 9, 4],
        in_flight_tokens=[1, 1, 0, 2, 2, 5, 5],
        running=[1, 1, 1, 2, 2, 3, 3],
        waiting=[0, 0, 0, 0, 0, 0, 1],
        kv_used=[0.5, 0.25, 0.0, 0.25, 0.25, 1.0, 0.5],
    )
    assert p_value(made(kind, 5, **keys), seen, request()) > 1e-4


@pytest.mark.parametrize("kind", ["random", "power_of_two"])
def test_a_draw_among_many_replicas_looks_at_few(kind: str) -> None:
    """With 1,000 healthy replicas the health of at most a dozen is looked at."""
    looked_at = 0

    class Watched(Replica):
        def __getattribute__(self, name: str) -> Any:
            nonlocal looked_at
            looked_at += name == "healthy"
            return super().__getattribute__(name)

    seen = [Watched(i) for i in range(1000)]
    looked_at = 0
    made(kind).choose(request(), seen, 0.0)
    assert 0 < looked_at <= 12


@pytest.mark.parametrize(("kind", "keys"), [("random", {}), ("power_of_two", {}), ("power_of_two", {"choices": 4})])
@pytest.mark.parametrize("healthy", [1, 3, 40])
def test_draws_are_even_when_few_of_many_are_healthy(kind: str, keys: dict[str, Any], healthy: int) -> None:
    """Among 60 replicas of which most are down, or few are, each healthy one is as likely."""
    up = set(Random(healthy).sample(range(60), healthy))
    seen = replicas(60, healthy=[i in up for i in range(60)])
    assert p_value(made(kind, 2, **keys), seen, request()) > 1e-4
