"""production-stack: turns by name, rates, sessions, the trie of chunks, and caches, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.request import Request
from simqueue.routing import Router, Signal

from .replicas import Replica, made, replicas, request


def logic(name: str, **keys: Any) -> Router:
    """Return the router of this logic."""
    return made("production-stack", routing_logic=name, **keys)


def prompted(name: str, *pieces: tuple[int, int, int], session: str | None = None) -> Request:
    """Return a request with this prompt."""
    return Request(name, 0.0, sum(n for _, _, n in pieces), 10, prompt=pieces, session=session)


def only(router: Router, one: Request, seen: list[Replica], now_s: float = 0.0) -> int:
    """Return the only replica that can be chosen."""
    (number,) = router.rank(one, seen, now_s).chances
    return number


def test_turns_go_by_name() -> None:
    """The order is that of the names as texts, and the counter goes on when a replica is down."""
    router, seen = logic("roundrobin"), replicas(3, name=["b", "c", "a"])
    chosen = []
    for i in range(5):
        seen[1].healthy = i != 3
        chosen.append(only(router, request(), seen))
        router.dispatched(request(), seen[chosen[-1]], 0.0)
    assert chosen == [2, 0, 1, 0, 0]  # turns 0, 1, 2 of a, b, c; turn 3 of a, b; turn 4 of three again
    assert router.is_independent


def test_without_a_session_the_lowest_rate_of_a_minute() -> None:
    """Never used before used; then arrivals of the last 60 s; the first of equal ones."""
    router, seen = logic("session"), replicas(3)
    for now_s, number in ((0.0, 0), (1.0, 0), (2.0, 1)):
        assert only(router, request(), seen, now_s) == [0, 1, 1][int(now_s)]
        router.dispatched(request(), seen[number], now_s)
    assert only(router, request(), seen, 3.0) == 2
    router.dispatched(request(), seen[2], 3.0)
    assert only(router, request(), seen, 4.0) == 1
    assert only(router, request(), seen, 61.5) == 0  # 0 of 0, 1 of 1, 1 of 2
    router.joined(seen[2], 62.0)
    assert only(router, request(), seen, 62.0) == 2


def test_sessions_stay_while_their_replica_is_healthy() -> None:
    """When a replica goes down, only its own sessions move, and they come back with it."""
    router, seen = logic("session"), replicas(4)
    sessions = [request(session=f"s{i}") for i in range(200)]
    before = [only(router, one, seen) for one in sessions]
    assert min(before.count(number) for number in range(4)) > 20
    seen[2].healthy = False
    after = [only(router, one, seen) for one in sessions]
    assert all(new == old for new, old in zip(after, before, strict=True) if old != 2)
    assert 2 not in after
    seen[2].healthy = True
    assert [only(router, one, seen) for one in sessions] == before


def test_prefixes_narrow_the_replicas_while_any_is_left() -> None:
    """Chunks of 32 tokens: both had the first, only replica 1 the second; loads do not count."""
    router, seen = logic("prefixaware"), replicas(3, in_flight=[0, 99, 0])
    router.dispatched(prompted("a", (1, 0, 32), (2, 0, 40)), seen[0], 0.0)
    router.dispatched(prompted("b", (1, 0, 64)), seen[1], 0.0)
    assert router.rank(prompted("c", (1, 0, 32), (3, 0, 9)), seen, 0.0).chances == {0: 0.5, 1: 0.5}
    assert only(router, prompted("d", (1, 0, 96)), seen) == 1
    assert router.rank(prompted("e", (4, 0, 96)), seen, 0.0).chances == pytest.approx({0: 1 / 3, 1: 1 / 3, 2: 1 / 3})
    seen[1].healthy = False
    assert only(router, prompted("d", (1, 0, 96)), seen) == 0
    router.joined(seen[0], 1.0)
    assert router.rank(prompted("d", (1, 0, 96)), seen, 1.0).chances == {0: 0.5, 2: 0.5}


def test_a_short_last_chunk_counts_as_a_whole_one() -> None:
    """With a minimum of 256 characters, 33 equal tokens are two chunks and enough; 32 are one and go by rate."""
    router, seen = logic("prefixaware", prefix_min_match_length=256), replicas(2)
    router.dispatched(prompted("a", (1, 0, 33)), seen[0], 0.0)
    assert only(router, prompted("b", (1, 0, 33)), seen) == 0
    assert router.rank(prompted("c", (1, 0, 32)), seen, 0.0).reason == "never used"


def cached(tokens: list[int], prompt: int, session: str | None = None) -> Any:
    """Return the ranking of a prompt of which the replicas have these tokens."""
    seen = replicas(len(tokens), cached=[{"r": n} if n else {} for n in tokens])
    return logic("kvaware").rank(request(prompt=prompt, session=session), seen, 0.0)


def test_the_first_cache_that_has_some_must_have_nearly_all() -> None:
    """It may lack 2000 tokens; a better one after it does not count; else by session or rate."""
    assert cached([0, 16, 1000], 2016).chances == {1: 1.0}
    assert cached([0, 16, 1000], 2017).reason == "never used"
    assert cached([0, 16, 3000], 3000, session="s").reason == "session"
    assert cached([0, 0, 0], 10).reason == "never used"
    assert logic("kvaware").reads == {Signal.CACHED}
