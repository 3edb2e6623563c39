"""Consistent hashing of sessions, with and without bounded loads."""

from __future__ import annotations

import hashlib
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..helpers.profiles import examples
from .replicas import Replica, fleets, made, replicas, request


def place(text: str) -> int:
    """Return the place of a text on the circle."""
    return int(hashlib.blake2b(text.encode(), digest_size=8).hexdigest(), 16)


def walked(seen: list[Replica], key: str, points: int) -> list[int]:
    """Return the numbers in their order on the circle after `key`, by sorting all points by their distance."""
    marks = [
        ((place(f"{one.name}/{i}") - place(key)) % 2**64, one.number)
        for one in seen
        for i in range(max(1, round(points * one.weight)))
    ]
    return list(dict.fromkeys(number for _, number in sorted(marks)))


def home(seen: list[Replica], session: str | None, name: str = "r", **keys: float) -> int:
    """Return the only replica with a chance."""
    (number,) = made("session_affinity", **keys).rank(request(name, session=session), seen, 0.0).chances
    return number


@examples(60, 600)
@given(seen=fleets(), session=st.text(max_size=5), points=st.integers(1, 6))
def test_the_first_healthy_one_on_the_circle(seen: list[Replica], session: str, points: int) -> None:
    """It is the healthy replica with the point closest after the session's, as found by sorting all distances."""
    healthy = {one.number for one in seen if one.healthy}
    order = [number for number in walked(seen, session, points) if number in healthy]
    assert home(seen, session, points=points) == order[0]


def test_without_a_session_the_request_counts() -> None:
    """A request without a session goes where a session of its name would go."""
    seen = replicas(5)
    assert [home(seen, None, f"q{i}") for i in range(20)] == [home(seen, f"q{i}") for i in range(20)]


def test_only_the_sessions_of_a_replica_move_when_it_leaves() -> None:
    """Sessions of the others stay, and those of the one that left, failed or came spread over the rest."""
    seen = replicas(8)
    router = made("session_affinity")
    sessions = [f"s{i}" for i in range(400)]

    def homes(views: list[Replica]) -> dict[str, int]:
        return {s: next(iter(router.rank(request(session=s), views, 0.0).chances)) for s in sessions}

    before, after = homes(seen), homes([one for one in seen if one.number != 3])
    assert {s for s in sessions if before[s] != after[s]} == {s for s in sessions if before[s] == 3}
    assert len({after[s] for s in sessions if before[s] == 3}) > 3
    assert homes(seen) == before
    seen[3].healthy = False
    assert homes(seen) == after


def test_points_spread_sessions_by_weight() -> None:
    """With 160 points per unit of weight, shares are within three standard deviations of points and sessions."""
    weights = [1.0, 1.0, 2.0, 4.0]
    router, seen = made("session_affinity"), replicas(4, weight=weights)
    n = 4000
    found = Counter(next(iter(router.rank(request(session=f"s{i}"), seen, 0.0).chances)) for i in range(n))
    for number, weight in enumerate(weights):
        share, points = weight / 8, 160 * weight
        # The arcs of a replica have the spread of a sum of exponentials.
        deviation = share * math.sqrt((1 - share) / points) + math.sqrt(share * (1 - share) / n)
        assert found[number] / n == pytest.approx(share, abs=3 * deviation)


@examples(60, 600)
@given(seen=fleets(), session=st.text(max_size=3), factor=st.sampled_from([1.0001, 1.25, 2.0]))
def test_bounded_loads(seen: list[Replica], session: str, factor: float) -> None:
    """It is the first on the circle that is healthy and, with this request, within its share times the factor."""
    able = [one for one in seen if one.healthy]
    total, weights = 1 + sum(one.in_flight for one in able), sum(one.weight for one in able)
    within = {one.number for one in able if one.in_flight + 1 <= math.ceil(factor * total * one.weight / weights)}
    order = [number for number in walked(seen, session, 4) if number in within]
    assert home(seen, session, points=4, load_factor=factor) == order[0]


def test_one_session_cannot_overload_its_replica() -> None:
    """100 requests of one session spread so that none of 10 replicas has more than the bound."""
    seen, router = replicas(10), made("session_affinity", load_factor=1.25)
    for i in range(100):
        choice = router.choose(request(f"r{i}", session="the only one"), seen, 0.0)
        assert choice.replica is not None
        seen[choice.replica].in_flight += 1
    assert max(one.in_flight for one in seen) <= math.ceil(1.25 * 100 / 10)
    assert not router.is_independent
    assert made("session_affinity").is_independent


def test_the_bound_counts_the_request_itself_and_reasons_say_why() -> None:
    """With two requests at home and none elsewhere, three in all, a bound of 1.25 gives each at most two."""
    seen, router = replicas(2), made("session_affinity", load_factor=1.25)
    asked = request(session="s")
    first = router.choose(asked, seen, 0.0)
    assert (first.replica is not None, first.reason) == (True, "session")
    assert first.replica is not None
    home, other = seen[first.replica], seen[1 - first.replica]
    home.in_flight = 2
    assert router.choose(asked, seen, 0.0) == (other.number, "over the bound", False)
    home.healthy = False
    assert router.choose(asked, seen, 0.0) == (other.number, "home is down", False)
    assert router.choose(request(), replicas(2), 0.0).reason == "no session"
