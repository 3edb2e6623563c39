"""Prefix affinity, by the caches themselves and by the router's own record."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.request import Request
from simqueue.routing import Signal
from simqueue.routing.sent import Sent

from ..helpers.profiles import examples
from .replicas import Replica, fleets, made, p_value, replicas, request

Keys = dict[str, Any]


def chances(seen: list[Replica], asked: Request | None = None, **keys: Any) -> dict[int, float]:
    """Return the chances of a router that knows the caches."""
    return dict(made("prefix_affinity", **keys).rank(asked or request(), seen, 0.0).chances)


@examples(100, 1000)
@given(
    seen=fleets(),
    threshold=st.sampled_from([0.0, 0.25, 0.5, 0.9]),
    balance=st.sampled_from([None, 0, 1, 2]),
    factor=st.sampled_from([1.0, 1.5, 3.0]),
)
def test_the_rule(seen: list[Replica], threshold: float, balance: int | None, factor: float) -> None:
    """Unequal loads or too little of the prompt: the fewest in flight; else those of them that have most of it."""
    able = [one for one in seen if one.healthy]
    loads, parts = [one.in_flight for one in able], [one.cached_tokens(request()) for one in able]
    unequal = balance is not None and max(loads) - min(loads) > balance and max(loads) > factor * min(loads)
    enough = max(parts) > 0 and max(parts) / 100 >= threshold
    if enough and not unequal:
        able = [one for one in able if one.cached_tokens(request()) == max(parts)]
    best = [one.number for one in able if one.in_flight == min(other.in_flight for other in able)]
    router = made("prefix_affinity", threshold=threshold, balance_abs=balance, balance_rel=factor)
    ranking = router.rank(request(), seen, 0.0)
    assert ranking.chances == dict.fromkeys(best, 1 / len(best))
    assert ranking.reason == ("unequal loads" if unequal else "hit" if enough else "miss")
    choice = router.choose(request(), seen, 0.0)
    assert (choice.replica in ranking.chances, choice.reason) == (True, ranking.reason)


def test_what_it_reads() -> None:
    """With the caches it reads them, with its own record it reads nothing of the engines."""
    assert made("prefix_affinity").reads == {Signal.CACHED}
    assert made("prefix_affinity", index="tree").reads == frozenset()


def test_ties_are_drawn_evenly() -> None:
    """Among replicas with as much of the prompt and as few requests, draws are even."""
    cached: list[Keys] = [{"r": 80}, {"r": 80}, {"r": 80}, {"r": 10}]
    seen = replicas(4, cached=cached, in_flight=[1, 2, 1, 0])
    assert chances(seen) == {0: 0.5, 2: 0.5}
    assert p_value(made("prefix_affinity"), seen, request()) > 1e-4


def common(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> int:
    """Return how many tokens at the beginning are equal."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


PROMPTS = st.lists(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=3),
    min_size=1,
    max_size=12,
)


@examples(100, 1000)
@given(prompts=PROMPTS, owners=st.lists(st.integers(0, 2), min_size=12, max_size=12), gone=st.integers(0, 3))
def test_the_record_knows_the_longest_common_beginning(
    prompts: list[list[tuple[int, int, int]]], owners: list[int], gone: int
) -> None:
    """For each replica it is the longest beginning that a prompt sent there has, by lists of tokens; none once gone."""
    sent, seen = Sent(10**6), replicas(4)
    known: dict[int, list[list[tuple[int, int]]]] = {0: [], 1: [], 2: [], 3: []}
    for i, (pieces, owner) in enumerate(zip(prompts, owners, strict=False)):
        asked = request(f"r{i}", prompt=sum(n for _, _, n in pieces), pieces=tuple(pieces))
        tokens = [(stream, start + j) for stream, start, n in pieces for j in range(n)]
        longest = {number: max((common(tokens, one) for one in lists), default=0) for number, lists in known.items()}
        assert sent.tokens(asked) == {number: n for number, n in longest.items() if n}
        sent.add(asked, seen[owner])
        known[owner].append(tokens)
        if i == 5:
            sent.forget(gone)
            known[gone] = []


def test_prompts_without_tokens_share_nothing() -> None:
    """Unknown tokens equal no others, but the request itself is known again, as after a failure."""
    sent, seen = Sent(None), replicas(1)
    sent.add(request("a"), seen[0])
    assert sent.tokens(request("b")) == {}
    assert sent.tokens(request("a")) == {0: 100}


@pytest.mark.parametrize(("pool", "most"), [(1000, None), (10**6, 1000)])
def test_the_record_is_as_large_as_the_pool_or_as_is_said(pool: int, most: int | None) -> None:
    """Of 50 prompts of 100 tokens, room for 1,000 tokens keeps the last ones, at most ten and at least eight."""
    sent, seen = Sent(most), [Replica(0, kv_tokens=pool)]
    for i in range(50):
        sent.add(request(f"r{i}"), seen[0])
    kept = [i for i in range(50) if sent.tokens(request(f"r{i}"))]
    assert kept == list(range(50 - len(kept), 50))
    assert 8 <= len(kept) <= 10


def test_a_conversation_stays_where_it_was() -> None:
    """With its own record, the next turns of a conversation go to the replica of the first, until that one fails."""
    router, seen = made("prefix_affinity", index="tree"), replicas(5)
    turns = [request(f"r{i}", prompt=100 * (i + 1), pieces=((7, 0, 100 * (i + 1)),)) for i in range(4)]
    first = router.choose(turns[0], seen, 0.0)
    assert (first.replica is not None, first.reason) == (True, "miss")
    assert first.replica is not None
    home = seen[first.replica]
    router.dispatched(turns[0], home, 0.0)
    home.in_flight = 3
    assert router.choose(turns[1], seen, 0.0) == (home.number, "hit", False)
    assert made("prefix_affinity", index="tree", threshold=0.6).choose(turns[1], seen, 0.0).reason == "miss"
    router.joined(home, 1.0)
    assert router.choose(turns[1], seen, 1.0).reason == "miss"


@pytest.mark.parametrize("keys", [{}, {"index": "tree"}])
def test_equal_prompts_do_not_overload_a_replica(keys: Keys) -> None:
    """Where all have the same prompt, the most requests in flight exceed the fewest by no more than the balance."""
    router, seen = made("prefix_affinity", balance_abs=4, balance_rel=1, **keys), replicas(4)
    for i in range(200):
        asked = request(f"r{i}", pieces=((1, 0, 100),))
        choice = router.choose(asked, seen, 0.0)
        assert choice.replica is not None
        one = seen[choice.replica]
        router.dispatched(asked, one, 0.0)
        one.in_flight += 1
        one.cached = {f"r{j}": 100 for j in range(i, 201)}
    assert max(one.in_flight for one in seen) - min(one.in_flight for one in seen) <= 5


def test_loads_are_unequal_above_the_balance() -> None:
    """A difference of exactly `balance_abs`, or exactly `balance_rel` times the fewest, is not too unequal."""
    cached: list[Keys] = [{"r": 100}, {}]
    loads = {(3, 1): "hit", (4, 2): "hit", (4, 1): "unequal loads", (6, 3): "hit", (7, 3): "unequal loads"}
    for (busy, idle), reason in loads.items():
        seen = replicas(2, cached=cached, in_flight=[busy, idle])
        router = made("prefix_affinity", balance_abs=2, balance_rel=2)
        assert router.choose(request(), seen, 0.0).reason == reason
