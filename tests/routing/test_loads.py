"""Routers that compare loads: least of a quantity, power of d choices, one central queue."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.routing import Signal

from ..helpers.profiles import examples
from .replicas import Replica, fleets, made, replicas, request


@pytest.mark.parametrize(
    ("kind", "keys", "value", "reads"),
    [
        ("least_outstanding", {}, lambda one: one.in_flight, set()),
        ("least_tokens", {}, lambda one: one.in_flight_prompt_tokens, set()),
        ("least_tokens", {"count": "all"}, lambda one: one.in_flight_tokens, set()),
        ("least_kv", {}, lambda one: one.kv_used, {Signal.KV_USED}),
        ("join_shortest_queue", {}, lambda one: one.running + one.waiting, {Signal.RUNNING, Signal.WAITING}),
    ],
)
@examples(40, 400)
@given(seen=fleets())
def test_the_least_loaded_share_the_chances(kind, keys, value, reads, seen) -> None:  # type: ignore[no-untyped-def]
    """All healthy replicas with the smallest value are equally likely; with `ties: first` the first of them is sure."""
    smallest = min(value(one) for one in seen if one.healthy)
    best = [one.number for one in seen if one.healthy and value(one) == smallest]
    router = made(kind, **keys)
    assert router.rank(request(), seen, 0.0).chances == dict.fromkeys(best, 1 / len(best))
    assert made(kind, ties="first", **keys).rank(request(), seen, 0.0).chances == {best[0]: 1}
    assert router.reads == reads


@examples(60, 600)
@given(seen=fleets(), choices=st.integers(1, 4))
def test_power_of_d_has_the_chances_of_all_draws(seen: list[Replica], choices: int) -> None:
    """Chances are those of a count over all ordered draws, the first of equal ones winning."""
    able = [one for one in seen if one.healthy]
    draws = list(permutations(able, min(choices, len(able))))
    won = Counter(min(draw, key=lambda one: one.in_flight).number for draw in draws)
    found = made("power_of_two", choices=choices).rank(request(), seen, 0.0).chances
    assert found == pytest.approx({number: n / len(draws) for number, n in won.items()})


def test_power_of_two_of_many() -> None:
    """Of 1,000 replicas one of which is idle, it is drawn with probability 2 in 1,000; the busiest is never chosen."""
    seen = replicas(1000, in_flight=[0, *[1] * 998, 2])
    chances = made("power_of_two").rank(request(), seen, 0.0).chances
    assert chances[0] == pytest.approx(2 / 1000)
    assert 999 not in chances


@examples(40, 400)
@given(seen=fleets())
def test_a_central_queue_lets_go_where_a_seat_is_free(seen: list[Replica]) -> None:
    """Of the healthy replicas with a free seat those with the fewest requests share the chances."""
    free = [one for one in seen if one.healthy and one.free_seats]
    fewest = min((one.in_flight for one in free), default=0)
    best = [one.number for one in free if one.in_flight == fewest]
    assert made("central_queue").rank(request(), seen, 0.0).chances == {number: 1 / len(best) for number in best}


def test_without_a_free_seat_requests_wait_at_the_router() -> None:
    """Seats of replicas that are down do not count."""
    seen = replicas(2, free_seats=[0, 3], healthy=[True, False])
    assert made("central_queue").choose(request(), seen, 0.0) == (None, "no free seat", False)
    assert made("central_queue").rank(request(), seen, 0.0).chances == {}


def test_reasons_are_short_words() -> None:
    """They are a column of the table of requests."""
    reasons = {kind: made(kind).choose(request(), replicas(2), 0.0).reason for kind in ("least_kv", "power_of_two")}
    assert reasons == {"least_kv": "least loaded", "power_of_two": "best of 2"}
    assert made("power_of_two", choices=3).choose(request(), replicas(2), 0.0).reason == "best of 3"
