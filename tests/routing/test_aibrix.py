"""AIBrix: prefixes, loads and ties by hand."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from simqueue.request import Request
from simqueue.routing import ROUTERS, Router, Signal

from .replicas import Replica, made, replicas, request


def prompted(name: str, *pieces: tuple[int, int, int]) -> Request:
    """Return a request with this prompt."""
    return Request(name, 0.0, sum(n for _, _, n in pieces), 10, prompt=pieces)


def prefix_cache(seen: list[Replica], sent: dict[int, int], **keys: Any) -> Router:
    """Return a router that sent the first so many of 100 tokens to these replicas."""
    router = made("aibrix", routing_strategy="prefix-cache", **keys)
    for number, tokens in sent.items():
        router.dispatched(prompted(str(number), (1, 0, tokens)), seen[number], 0.0)
    return router


PROMPT = prompted("p", (1, 0, 100))


def test_the_longest_prefix_wins_and_of_equal_ones_the_less_busy() -> None:
    """60 % before 40 %; of two with 60 % the one with fewer requests; of those, one at random."""
    seen = replicas(4, in_flight=[3, 2, 2, 0])
    assert prefix_cache(seen, {0: 60, 3: 40}).rank(PROMPT, seen, 0.0).chances == {0: 1.0}
    assert prefix_cache(seen, {0: 60, 1: 60}).rank(PROMPT, seen, 0.0).chances == {1: 1.0}
    assert prefix_cache(seen, {0: 60, 1: 60, 2: 60}).rank(PROMPT, seen, 0.0).chances == {1: 0.5, 2: 0.5}


def test_shares_are_compared_in_whole_per_cents() -> None:
    """Of 1000 blocks, 605 and 601 are both 60 %: the less busy one wins."""
    seen = replicas(2, in_flight=[1, 0])
    router = prefix_cache(seen, {0: 605, 1: 601})
    assert router.rank(prompted("p", (1, 0, 1000)), seen, 0.0).chances == {1: 1.0}


def test_a_cached_replica_that_is_too_busy_is_passed_over() -> None:
    """Loads 6, 0, 0, 0: mean 1.5, deviation of a sample 3, limit 4.5. The next match is taken, else the least busy."""
    seen = replicas(4, in_flight=[6, 0, 0, 0])
    assert prefix_cache(seen, {0: 90, 1: 10}).rank(PROMPT, seen, 0.0).chances == {1: 1.0}
    alone = prefix_cache(seen, {0: 90}).rank(PROMPT, seen, 0.0)
    assert alone.chances == pytest.approx({1: 1 / 3, 2: 1 / 3, 3: 1 / 3})
    assert alone.reason == "match is busy"
    wider = prefix_cache(seen, {0: 90}, prefix_cache_standard_deviation_factor=1.5)
    assert wider.rank(PROMPT, seen, 0.0).chances == {0: 1.0}


def test_far_apart_loads_leave_the_least_busy_only() -> None:
    """A gap of 9 counts, of 8 does not: then only the least busy are compared by prefix."""
    apart = {"in_flight": [9, 0, 0, 9, 9, 9, 9]}
    seen = replicas(7, **apart)
    assert prefix_cache(seen, {0: 90, 2: 10}).rank(PROMPT, seen, 0.0).chances == {2: 1.0}
    assert prefix_cache(seen, {0: 90}).rank(PROMPT, seen, 0.0).chances == {1: 0.5, 2: 0.5}
    closer = replicas(7, in_flight=[8, 0, 0, 8, 8, 8, 8])
    assert prefix_cache(closer, {0: 90, 2: 10}).rank(PROMPT, closer, 0.0).chances == {0: 1.0}


def test_what_is_idle_for_twenty_minutes_is_forgotten() -> None:
    """A prompt counts until the first whole second after 1200 s."""
    seen = replicas(2)
    router = prefix_cache(seen, {0: 90})
    assert router.rank(PROMPT, seen, 1200.9).reason == "prefix match"
    assert router.rank(PROMPT, seen, 1201.0).reason == "least requests"
    router.joined(seen[0], 1.0)
    assert router.rank(PROMPT, seen, 2.0).reason == "least requests"


def test_blocks_are_of_characters() -> None:
    """128 characters at 4 a token are blocks of 32 tokens; a rest does not count."""
    seen = replicas(2)
    router = prefix_cache(seen, {0: 95}, prefix_cache_block_size=128)
    assert router.rank(PROMPT, seen, 0.0).scores["match_percent"] == {0: 66}  # 2 of 3 blocks
    assert router.rank(prompted("q", (1, 0, 31)), seen, 0.0).reason == "least requests"


def test_of_the_least_used_pools_the_last() -> None:
    """Equal use: the one that stands last in the list."""
    router = made("aibrix", routing_strategy="least-kv-cache")
    seen = replicas(4, kv_used=[0.5, 0.25, 0.25, 0.0], healthy=[True, True, True, False])
    assert router.rank(request(), seen, 0.0).chances == {2: 1.0}
    assert router.reads == {Signal.KV_USED}
    assert ROUTERS["aibrix"].ages[Signal.KV_USED].every_s == 0.05


@pytest.mark.parametrize("name", ["throughput", "least-latency"])
def test_strategies_that_need_what_is_not_reported_are_refused(name: str) -> None:
    """The error says what is missing."""
    with pytest.raises(ValidationError, match=f"'{name}' needs .*does not report"):
        made("aibrix", routing_strategy=name)
