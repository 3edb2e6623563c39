"""nginx: turns, connections and pairs by hand and against small computations."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.routing import ROUTERS, Router

from ..helpers.profiles import examples
from .replicas import Replica, made, replicas, request


def turns(router: Router, seen: list[Replica], n: int) -> list[int]:
    """Return n choices in a row; no request ends."""
    chosen = []
    for _ in range(n):
        (number,) = router.rank(request(), seen, 0.0).chances
        router.dispatched(request(), seen[number], 0.0)
        chosen.append(number)
    return chosen


def test_turns_are_smooth() -> None:
    """Weights 5, 1, 1 give a a b a c a a, the published example of the algorithm."""
    assert turns(made("nginx"), replicas(3, weight=[5, 1, 1]), 7) == [0, 0, 1, 0, 2, 0, 0]


def test_fewest_connections_per_weight() -> None:
    """5 of weight 3 are fewer than 2 of weight 1; 6 of weight 3 and 2 of weight 1 are equal."""
    router = made("nginx", method="least_conn")
    assert turns(router, replicas(2, weight=[1, 3], in_flight=[2, 5]), 2) == [1, 1]
    assert not router.is_independent


def test_equal_connections_take_turns_by_weight() -> None:
    """Equal ones gain their weights, the first with the most is chosen and loses their sum: 3, 1 give a a b a."""
    router = made("nginx", method="least_conn")
    seen = replicas(3, weight=[3, 1, 1], in_flight=[6, 2, 3])
    assert turns(router, seen, 4) == [0, 0, 1, 0]
    seen[0].in_flight = 7
    assert turns(router, seen, 2) == [1, 1]  # alone: the turns stay as they are
    seen[0].in_flight = 6
    assert turns(router, seen, 4) == [0, 0, 1, 0]


@examples(40, 600)
@given(
    weights=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    loads=st.lists(st.integers(0, 4), min_size=4, max_size=4),
)
def test_the_better_of_two_by_weight(weights: list[int], loads: list[int]) -> None:
    """Over all ordered pairs, drawn by weight: the lower load per weight, the second of equal ones."""
    total, expected = sum(weights), [Fraction(0)] * len(weights)
    for first, second in permutations(range(len(weights)), 2):
        chance = Fraction(weights[first], total) * Fraction(weights[second], total - weights[first])
        worse = Fraction(loads[second], weights[second]) > Fraction(loads[first], weights[first])
        expected[first if worse else second] += chance
    seen = replicas(len(weights), weight=weights, in_flight=loads[: len(weights)])
    found = made("nginx", method="random two least_conn").rank(request(), seen, 0.0).chances
    assert found == pytest.approx({i: float(chance) for i, chance in enumerate(expected) if chance})


def test_sessions_go_on_to_the_next_point() -> None:
    """A session whose replica is down goes to another one, and comes back."""
    router, seen = made("nginx", method="hash consistent"), replicas(3)
    (home,) = router.rank(request(session="s"), seen, 0.0).chances
    seen[home].healthy = False
    assert home not in router.rank(request(session="s"), seen, 0.0).chances
    seen[home].healthy = True
    assert router.rank(request(session="s"), seen, 0.0).chances == {home: 1.0}


def test_one_failure_is_enough_to_be_left_alone() -> None:
    """max_fails=1, fail_timeout=10s; no retry of a POST."""
    recovery = ROUTERS["nginx"].recovery
    assert (recovery.retries, recovery.breaker_failures, recovery.breaker_open_s) == (0, 1, 10.0)
