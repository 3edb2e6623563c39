"""Envoy: choices, turns by deadline, rings and tables, by hand and against small computations."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from simqueue.routing import Router
from simqueue.routing.envoy.tables import MaglevTable, RingTable

from ..helpers.profiles import examples
from .replicas import Replica, made, replicas, request


def policy(name: str, **keys: Any) -> Router:
    """Return the router of this policy."""
    return made("envoy", lb_policy=name, **keys)


def turns(router: Router, seen: list[Replica], n: int) -> list[int]:
    """Return n choices in a row; no request ends."""
    chosen = []
    for _ in range(n):
        (number,) = router.rank(request(), seen, 0.0).chances
        router.dispatched(request(), seen[number], 0.0)
        chosen.append(number)
    return chosen


@examples(40, 600)
@given(loads=st.lists(st.integers(0, 3), min_size=1, max_size=5), choices=st.integers(2, 4))
def test_the_least_loaded_of_choices_that_may_be_the_same(loads: list[int], choices: int) -> None:
    """The chances are those of all equally likely draws, the first of equal ones taken."""
    n = len(loads)
    counts = Counter(min(draw, key=lambda i: loads[i]) for draw in product(range(n), repeat=choices))
    ranking = policy("LEAST_REQUEST", choice_count=choices).rank(request(), replicas(n, in_flight=loads), 0.0)
    assert ranking.chances == pytest.approx({i: counts[i] / n**choices for i in sorted(counts)})


def test_turns_by_weight() -> None:
    """Weights 2 and 1: deadlines 1/2, 1, 3/2 and 1, 2; at 1 the second's was set first."""
    assert turns(policy("ROUND_ROBIN"), replicas(2, weight=[2, 1]), 9) == [0, 1, 0, 0, 1, 0, 0, 1, 0]
    assert turns(policy("ROUND_ROBIN"), replicas(3), 5) == [0, 1, 2, 0, 1]


def test_turns_begin_anew_with_other_replicas() -> None:
    """When the healthy ones change, all deadlines are set again."""
    router, seen = policy("ROUND_ROBIN"), replicas(3, weight=[1, 2, 3])
    assert turns(router, seen, 1) == [2]
    seen[2].healthy = False
    assert turns(router, seen, 3) == [1, 0, 1]
    seen[2].healthy = True
    assert turns(router, seen, 1) == [2]


@examples(40, 1000)
@given(weights=st.lists(st.integers(1, 6), min_size=2, max_size=4).filter(lambda w: min(w) < max(w)))
def test_each_gets_its_share_of_turns(weights: list[int]) -> None:
    """After as many turns as the sum of the weights, no replica is more than one turn from its weight."""
    chosen = Counter(turns(policy("ROUND_ROBIN"), replicas(len(weights), weight=weights), sum(weights)))
    assert all(abs(chosen[i] - weight) <= 1 for i, weight in enumerate(weights))


@examples(40, 600)
@given(
    weights=st.lists(st.sampled_from([1, 2, 4]), min_size=2, max_size=4).filter(lambda w: min(w) < max(w)),
    loads=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    bias=st.sampled_from([0, 1, 2]),
)
def test_unequal_weights_take_turns_by_load(weights: list[int], loads: list[int], bias: int) -> None:
    """Deadlines, in exact fractions: (requests + 1)^bias / weight after the one that was met, FIFO among equal ones."""
    n = len(weights)
    seen = replicas(n, weight=weights, in_flight=loads[:n])
    router = policy("LEAST_REQUEST", active_request_bias=float(bias))
    gap = [Fraction((loads[i] + 1) ** bias, weights[i]) for i in range(n)]
    due = [(gap[i], i, i) for i in range(n)]
    for turn in range(12):
        deadline, _, expected = min(due)
        ranking = router.rank(request(), seen, 0.0)
        if len([one for one in due if one[0] == deadline]) == 1:  # equal ones may differ by rounding
            assert ranking.chances == {expected: 1.0}
        (number,) = ranking.chances
        router.dispatched(request(), seen[number], 0.0)
        at = next(i for i, one in enumerate(due) if one[2] == number)
        due[at] = (due[at][0] + gap[number], n + turn, number)


WEIGHTS = st.dictionaries(st.integers(0, 30), st.sampled_from([0.5, 1, 1, 2, 3]), min_size=1, max_size=6)


@examples(40, 600)
@given(weights=WEIGHTS, size=st.sampled_from([64, 100, 1024]))
def test_points_on_the_ring_follow_weights(weights: dict[int, float], size: int) -> None:
    """The ring has at least `size` points; shares add up to 1, and are those of places that are looked up."""
    names = {number: f"replica-{number}" for number in weights}
    ring = RingTable(weights, names, size, 8_388_608)
    assert len(ring) >= size
    assert sum(ring.shares().values()) == pytest.approx(1)
    assert len(RingTable(weights, names, 100, 10)) <= 11
    looked_up = Counter(ring.of((i << 64) // 4000) for i in range(4000))
    for number, share in ring.shares().items():
        assert looked_up[number] / 4000 == pytest.approx(share, abs=len(ring) / 4000)


@examples(30, 300)
@given(weights=WEIGHTS)
def test_the_table_of_maglev_is_as_even_as_its_weights(weights: dict[int, float]) -> None:
    """Each replica has its share of 997 entries, up to a few."""
    names = {number: f"replica-{number}" for number in weights}
    table = MaglevTable(weights, names, 997)
    total = sum(weights.values())
    assert len(table) == 997
    for number, weight in weights.items():
        assert table.shares()[number] * 997 == pytest.approx(997 * weight / total, abs=1 + 3 * len(weights))


@pytest.mark.parametrize(("name", "keys", "moved"), [("RING_HASH", {}, 0.2), ("MAGLEV", {"table_size": 1009}, 0.12)])
def test_few_sessions_move_when_a_replica_fails(name: str, keys: dict[str, Any], moved: float) -> None:
    """Beside those of the failed replica few move. On the ring the others get 20 % of its points anew, and so 15 %."""
    router, seen = policy(name, **keys), replicas(5)
    sessions = [request(session=f"s{i}") for i in range(400)]

    def homes() -> list[int]:
        return [next(iter(router.rank(one, seen, 0.0).chances)) for one in sessions]

    before = homes()
    assert min(Counter(before).values()) > 40
    seen[3].healthy = False
    after = homes()
    assert 3 not in after
    others = [new != old for new, old in zip(after, before, strict=True) if old != 3]
    assert sum(others) <= moved * len(others)
    seen[3].healthy = True
    assert homes() == before
    assert router.is_independent


def test_a_request_without_a_session_has_a_random_hash() -> None:
    """Its chances are the shares of the table: 33 or 34 of 101 entries each."""
    found = policy("MAGLEV", table_size=101).rank(request(), replicas(3), 0.0).chances
    assert sorted(round(101 * chance) for chance in found.values()) == [33, 34, 34]


@pytest.mark.parametrize(
    ("keys", "text"),
    [({"table_size": 100}, "must be a prime number"), ({"maximum_ring_size": 10}, "at most maximum_ring_size")],
)
def test_sizes_that_do_not_work_are_refused(keys: dict[str, int], text: str) -> None:
    """A table has a prime size; a ring is not smaller than its minimum."""
    with pytest.raises(ValidationError, match=text):
        policy("RING_HASH", **keys)
