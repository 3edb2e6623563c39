"""The other policies of sglang-router and vllm-router, worked out by hand; and what all policies keep to."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from simqueue.errors import InputError
from simqueue.routing import Router, Signal
from simqueue.routing.gateway import PairRouter
from simqueue.routing.gateway.bucket import bounds_of
from simqueue.routing.gateway.hashing import ring_hash
from simqueue.routing.gateway.products import sglang_pair, vllm_pair
from simqueue.routing.gateway.settings import SglangSettings, VllmRouterSettings
from simqueue.routing.gateway.sticky import StickyLeastLoaded
from simqueue.settings import problems_of

from ..helpers.profiles import examples
from .replicas import Replica, fleets, made, p_value, replicas, request

SGLANG = [{"version": version} for version in ("0.1.9", "0.2.3", "0.2.4", "0.3.2")]
POLICIES: list[tuple[str, dict[str, Any]]] = [
    *(("sglang-router", {**keys, "policy": policy}) for keys in SGLANG for policy in ("cache_aware", "power_of_two")),
    *(("sglang-router", {"policy": policy}) for policy in ("round_robin", "random", "bucket")),
    ("sglang-router", {"policy": "power_of_two", "token_loads": True}),
    *(("sglang-router", {"policy": "manual", "assignment_mode": mode}) for mode in ("random", "min_load", "min_group")),
    *(
        ("vllm-router", {"version": version, "policy": policy})
        for version in ("0.1.12", "0.1.17")
        for policy in ("cache_aware", "power_of_two", "consistent_hash", "round_robin", "random")
    ),
    *(("vllm-router", {"policy": policy}) for policy in ("sticky_least_loaded", "kv_aware")),
]
PROMPT = st.lists(st.tuples(st.integers(1, 2), st.just(0), st.integers(1, 9)), min_size=1, max_size=2).map(tuple)


def sent(router: Router, seen: list[Replica], asked: Any, now_s: float = 0.0) -> int:
    """Dispatch a request to the first replica that can be chosen, and return it."""
    number = next(iter(router.rank(asked, seen, now_s).chances))
    router.dispatched(asked, next(one for one in seen if one.number == number), now_s)
    return number


@examples(80, 800)
@given(policy=st.sampled_from(POLICIES), seen=fleets(), prompts=st.lists(PROMPT, max_size=6), data=st.data())
def test_chances_are_of_healthy_replicas_and_choices_have_chances(
    policy: tuple[str, dict[str, Any]], seen: list[Replica], prompts: list[Any], data: st.DataObject
) -> None:
    """Whatever was sent before and whoever is down, chances add up to 1 and are of healthy replicas, as choices are."""
    router = made(policy[0], **policy[1])
    for number, prompt in enumerate(prompts):
        session = data.draw(st.sampled_from([None, "a", "b"]))
        asked = request(f"r{number}", prompt=sum(n for _, _, n in prompt), session=session)
        ranking = router.rank(asked, seen, float(number))
        choice = router.choose(asked, seen, float(number))
        assert (choice.reason, choice.refused) == (ranking.reason, False)
        assert sum(ranking.chances.values()) == pytest.approx(1)
        assert min(ranking.chances.values()) > 0
        assert ranking.chances.keys() <= {replica.number for replica in seen if replica.healthy}
        assert choice.replica in ranking.chances
        router.dispatched(asked, next(one for one in seen if one.number == choice.replica), float(number))
        seen[data.draw(st.integers(0, len(seen) - 1))].healthy = True
        seen[data.draw(st.integers(1, len(seen))) % len(seen)].healthy ^= len(seen) > 1
        seen[0].healthy |= not any(replica.healthy for replica in seen)


@examples(80, 1000)
@given(policy=st.sampled_from(POLICIES), seen=fleets(), extra=st.lists(st.booleans(), max_size=8))
def test_questions_change_nothing(policy: tuple[str, dict[str, Any]], seen: list[Replica], extra: list[bool]) -> None:
    """However often is asked, decisions depend only on what was dispatched."""
    once, often = made(policy[0], **policy[1]), made(policy[0], **policy[1])
    for number, more in enumerate(extra):
        asked = request(f"r{number}", session=f"s{number % 3}")
        if more:
            often.choose(request("other"), seen, 0.0)
            often.rank(asked, seen, 0.0)
        ranking = once.rank(asked, seen, 0.0)
        assert often.rank(asked, seen, 0.0) == ranking
        replica = next(one for one in seen if one.number == list(ranking.chances)[-1])
        once.dispatched(asked, replica, 0.0)
        often.dispatched(asked, replica, 0.0)


@pytest.mark.parametrize(("kind", "keys"), POLICIES, ids=str)
def test_choices_have_the_frequencies_of_their_chances(kind: str, keys: dict[str, Any]) -> None:
    """3,000 choices do not differ from the chances (chi-square), with equal loads and a replica that is down."""
    up = [True, True, False, True, True]
    seen = replicas(5, healthy=up, in_flight=[2, 0, 0, 1, 1], tokens=[5, 5, 0, 7, 1])
    assert p_value(made(kind, 5, **keys), seen, request(session="s")) > 1e-4


@examples(100, 1000)
@given(loads=st.lists(st.integers(0, 3), min_size=2, max_size=6))
def test_chances_of_the_lower_of_two(loads: list[int]) -> None:
    """As by all pairs of different workers: the lower load wins, the first drawn if they are equal."""
    router = made("vllm-router", policy="power_of_two")
    pairs = list(permutations(range(len(loads)), 2))
    won = Counter(a if loads[a] <= loads[b] else b for a, b in pairs)
    chances = router.rank(request(), replicas(len(loads), in_flight=loads), 0.0).chances
    assert chances == pytest.approx({number: count / len(pairs) for number, count in won.items()})


@pytest.mark.parametrize(("product", "version"), [("sglang-router", "0.3.2"), ("vllm-router", "0.1.12")])
def test_two_are_not_compared_where_requests_are_not_counted(product: str, version: str) -> None:
    """All healthy workers alike, whatever their loads; the choices then follow from the requests alone."""
    router = made(product, version=version, policy="power_of_two")
    assert router.rank(request(), replicas(4, in_flight=[9, 0, 0, 0]), 0.0).chances == dict.fromkeys(range(4), 0.25)
    assert router.is_independent
    assert not made("vllm-router", policy="power_of_two").is_independent


def test_reported_tokens_are_compared() -> None:
    """Of 900, 100 and 5000 tokens, the first wins one pair of three, the second two; the signal is read."""
    router = made("sglang-router", policy="power_of_two", token_loads=True)
    chances = router.rank(request(), replicas(3, tokens=[900, 100, 5000], in_flight=[0, 4, 0]), 0.0).chances
    assert chances == pytest.approx({0: 1 / 3, 1: 2 / 3})
    assert router.reads == {Signal.TOKENS}
    assert router.ages[Signal.TOKENS].every_s == 30
    assert not made("sglang-router", policy="power_of_two").reads


def test_a_key_stays_and_returns() -> None:
    """A key stays; while its worker is down it has a second one, each time the same; afterwards it returns."""
    router = made("sglang-router", policy="manual", assignment_mode="min_load")
    seen = replicas(3, in_flight=[1, 0, 1])
    asked = request(session="k")
    assert sent(router, seen, asked) == 1
    seen[1].in_flight = 50
    assert router.rank(asked, seen, 0.0).chances == {1: 1.0}
    seen[1].healthy = False
    assert router.rank(asked, seen, 0.0).chances == {0: 0.5, 2: 0.5}
    router.dispatched(asked, seen[2], 0.0)
    seen[2].in_flight = 70
    assert router.rank(asked, seen, 0.0).chances == {2: 1.0}
    seen[1].healthy = True
    assert router.rank(asked, seen, 0.0).chances == {1: 1.0}


def test_new_keys_go_to_the_fewest_keys_in_flight() -> None:
    """With min_group, nine keys are three for each worker; a key counts once, until its last request has ended."""
    router = made("sglang-router", policy="manual", assignment_mode="min_group")
    seen = replicas(3, in_flight=[5, 0, 0])
    at = {i: sent(router, seen, request(session=f"k{i}")) for i in range(9)}
    assert Counter(at.values()) == {0: 3, 1: 3, 2: 3}
    again = request(session="k0")
    for _ in range(4):
        assert sent(router, seen, again) == at[0]
    new = request(session="new")
    assert router.rank(new, seen, 0.0).scores["keys"] == {0: 3, 1: 3, 2: 3}
    for ended in range(1, 6):
        router.finished(again, seen[at[0]], 0.0, tokens=10, served=True)
        keys = dict.fromkeys(range(3), 3.0) | ({at[0]: 2.0} if ended == 5 else {})
        assert router.rank(new, seen, 0.0).scores["keys"] == keys
    assert router.rank(new, seen, 0.0).chances == {at[0]: 1.0}


def test_keys_of_a_worker_that_left_are_new() -> None:
    """They are assigned again, and those of other workers stay."""
    router = made("sglang-router", policy="manual")
    seen = replicas(3)
    at = {i: sent(router, seen, request(session=f"k{i}")) for i in range(9)}
    gone = seen.pop(0)
    router.left(gone, 0.0)
    for number, home in at.items():
        ranking = router.rank(request(session=f"k{number}"), seen, 0.0)
        assert ranking.reason == ("new key" if home == 0 else "key")


def test_requests_without_a_key_are_random() -> None:
    """They leave no key behind."""
    router = made("sglang-router", policy="manual", assignment_mode="min_load")
    seen = replicas(2, in_flight=[5, 0])
    assert router.rank(request(), seen, 0.0).chances == {0: 0.5, 1: 0.5}
    router.dispatched(request(), seen[0], 0.0)
    assert router.rank(request(), seen, 0.0).chances == {0: 0.5, 1: 0.5}


@pytest.mark.parametrize(
    ("product", "policy", "idle_s"), [("sglang-router", "manual", 14400), ("vllm-router", "sticky_least_loaded", 7200)]
)
def test_what_is_idle_is_forgotten(product: str, policy: str, idle_s: int) -> None:
    """A key or session is kept while it is used within the time, and is new after it."""
    router = made(product, policy=policy)
    seen = replicas(3)
    asked = request(session="k")
    home = sent(router, seen, asked)
    assert sent(router, seen, asked, idle_s - 1.0) == home
    assert router.rank(asked, seen, 2 * idle_s - 2.0).reason in ("key", "session")
    assert router.rank(asked, seen, 2 * idle_s - 1.0).reason in ("new key", "fewest sessions")


def test_sessions_and_not_requests_are_counted() -> None:
    """A busy session counts once; a new one goes to the fewest sessions, by the largest hash if they are equal."""
    router = made("vllm-router", policy="sticky_least_loaded")
    seen = replicas(3)
    counts = dict.fromkeys(range(3), 0)
    for number in range(12):
        asked = request(session=f"s{number}")
        fewest = [one for one in seen if counts[one.number] == min(counts.values())]
        expected = max(fewest, key=lambda one: ring_hash(f"s{number}:{one.name}")).number
        assert [sent(router, seen, asked) for _ in range(3)] == [expected] * 3
        counts[expected] += 1
    assert set(counts.values()) == {4}


def test_requests_without_a_session_go_by_their_text_and_are_not_counted() -> None:
    """Of the workers with the fewest sessions, the one with the largest hash of text and name."""
    router = made("vllm-router", policy="sticky_least_loaded")
    seen = replicas(4)
    busy = sent(router, seen, request(session="s"))
    found = set()
    for number in range(12):
        asked = request(f"r{number}", prompt=number + 1)
        rest = [one for one in seen if one.number != busy]
        expected = max(rest, key=lambda one: ring_hash(f"r{number}:{one.name}")).number
        assert sent(router, seen, asked) == expected
        found.add(expected)
    assert len(found) > 1


def test_a_session_that_moved_stays() -> None:
    """When its worker is down it moves for good; a finished session leaves room."""
    router = made("vllm-router", policy="sticky_least_loaded")
    seen = replicas(2)
    asked = request(session="s")
    home = sent(router, seen, asked)
    seen[home].healthy = False
    other = sent(router, seen, asked)
    assert other != home
    seen[home].healthy = True
    assert router.rank(asked, seen, 0.0).chances == {other: 1.0}
    assert router.rank(request(session=None), seen, 0.0).chances == {home: 1.0}
    policy = getattr(router, "policy", None)
    assert isinstance(policy, StickyLeastLoaded)
    policy.finish_session("s")
    assert router.rank(request(session=None), seen, 0.0).scores["sessions"] == {0: 0.0, 1: 0.0}
    router.left(seen.pop(other), 0.0)
    assert router.rank(asked, seen, 0.0).reason == "fewest sessions"


def test_sessions_spread_on_the_ring_and_only_those_of_a_worker_down_move() -> None:
    """Of 400 sessions each of 4 workers has some; with one down, the others keep theirs."""
    router = made("vllm-router", policy="consistent_hash")
    seen = replicas(4)
    names = [f"s{i}" for i in range(400)]
    before = {name: sent(router, seen, request(session=name)) for name in names}
    assert min(Counter(before.values()).values()) > 40
    seen[2].healthy = False
    after = {name: sent(router, seen, request(session=name)) for name in names}
    assert {name for name in names if before[name] != after[name]} == {n for n in names if before[n] == 2}
    assert len(set(after.values())) == 3


def test_tokens_times_requests() -> None:
    """kv_aware: prompt tokens in flight times requests in flight, each with this request; the first on a tie."""
    router = made("vllm-router", policy="kv_aware")
    seen = replicas(3, in_flight=[0, 1, 3], in_flight_prompt_tokens=[90, 40, 10])
    for prompt, costs in (
        (10, {0: 100, 1: 100, 2: 80}),
        (20, {0: 110, 1: 120, 2: 120}),
        (70, {0: 160, 1: 220, 2: 320}),
    ):
        ranking = router.rank(request(prompt=prompt), seen, 0.0)
        assert ranking.scores["cost"] == costs
        assert ranking.chances == {min(costs, key=lambda number: costs[number]): 1.0}
    seen[2].healthy = False
    assert router.rank(request(prompt=10), seen, 0.0).chances == {0: 1.0}


def test_bucket_before_its_first_cut() -> None:
    """The first worker holds all lengths; once characters are imbalanced, the one with the fewest is chosen."""
    router = made("sglang-router", policy="bucket", balance_abs_threshold=500, chars_per_token=1)
    seen = replicas(3)
    found = [sent(router, seen, request(f"r{i}", prompt=100)) for i in range(9)]
    assert found == [0] * 6 + [1, 2, 0]


def test_bucket_after_a_cut() -> None:
    """After 5 s ranges have equal characters: prompts 10, 20, 30 and 60 are cut after 30; older ones leave."""
    router = made("sglang-router", policy="bucket", balance_abs_threshold=1000, chars_per_token=1)
    seen = replicas(2)
    for number, prompt in enumerate((60, 10, 30, 20)):
        assert sent(router, seen, request(f"r{number}", prompt=prompt), 1.0) == 0
    chosen = {n: router.rank(request(f"x{n}", prompt=n), seen, 5.0).chances for n in (1, 30, 31, 500)}
    assert chosen == {1: {0: 1.0}, 30: {0: 1.0}, 31: {1: 1.0}, 500: {1: 1.0}}
    assert router.rank(request("y"), seen, 6.0).scores["characters"] == {0: 120.0, 1: 0.0}
    router.dispatched(request("y", prompt=7), seen[1], 6.1)
    assert router.rank(request("z"), seen, 6.1).scores["characters"] == {0: 0.0, 1: 7.0}
    seen[1].healthy = False
    assert router.rank(request("w", prompt=500), seen, 6.1).chances == {0: 1.0}


def test_bucket_is_cut_again_only_if_the_work_has_more_than_doubled_or_halved() -> None:
    """Of 100 characters per worker, prompts of 200 in the next period keep the cut, and those of 201 change it."""
    for prompt, bound_moves in ((100, False), (101, True)):
        router = made("sglang-router", policy="bucket", balance_abs_threshold=10_000, chars_per_token=1)
        seen = replicas(2)
        for number in range(2):
            sent(router, seen, request(f"a{number}", prompt=100), 1.0)
        assert router.rank(request("x", prompt=101), seen, 5.0).chances == {1: 1.0}
        for number in range(4):
            sent(router, seen, request(f"b{number}", prompt=prompt), 6.5)
        assert (router.rank(request("y", prompt=101), seen, 10.0).chances == {0: 1.0}) == bound_moves


def test_bucket_begins_again_with_other_workers() -> None:
    """When a worker joins, the first one holds all lengths again, and characters are counted from 0."""
    router = made("sglang-router", policy="bucket", balance_abs_threshold=1000, chars_per_token=1)
    seen = replicas(2)
    for number, prompt in enumerate((10, 90)):
        sent(router, seen, request(f"r{number}", prompt=prompt), 1.0)
    assert router.rank(request("x", prompt=500), seen, 5.0).chances == {1: 1.0}
    seen.append(Replica(2))
    ranking = router.rank(request("x", prompt=500), seen, 5.1)
    assert ranking.chances == {0: 1.0}
    assert ranking.scores["characters"] == {0: 0.0, 1: 0.0, 2: 0.0}


@pytest.mark.parametrize(
    ("lengths", "bounds"),
    [([33, 34, 34], [33, 67]), ([5, 10, 15, 20, 24, 26], [20, 26]), ([9], [9, 13]), ([8, 8], [8, 14])],
)
def test_cuts_are_those_of_the_program(lengths: list[int], bounds: list[int]) -> None:
    """The first two are examples of the program's own tests, with three workers; the others by hand."""
    assert bounds_of(lengths, sum(lengths) // 3, 3) == bounds


def test_cuts_and_choices_are_those_of_a_running_router() -> None:
    """Prompts sent to sglang-router 0.3.2 with three workers for prefill, and the ranges that it logged after each cut.

    The cut at 20 s was not made: the characters per worker had neither doubled nor halved.
    """
    router = made("sglang-router", policy="bucket", balance_abs_threshold=1_000_000, chars_per_token=1)
    seen = replicas(3)
    batches: list[tuple[float, list[int], list[int], list[int]]] = [
        (0.1, [5, 10, 15, 20, 24, 26, 90, 200], [0] * 8, [90, 200]),
        (7.0, [33, 34, 34], [0, 0, 0], [33, 67]),
        (13.6, [7, 7, 7, 300, 12, 12, 12, 900, 50], [0, 0, 0, 2, 0, 0, 0, 2, 1], [900, 1336]),
        (20.4, [3000, 20, 20, 100, 100, 64, 5], [2, 0, 0, 0, 0, 0, 0], [3000, 4104]),
        (27.1, [9] * 12 + [500], [0] * 13, [500, 703]),
    ]
    for begin, prompts, chosen, bounds in batches:
        at = [sent(router, seen, request(f"{begin} {i}", prompt=n), begin + i / 20) for i, n in enumerate(prompts)]
        assert at == chosen
        for number, bound in enumerate(bounds):
            for prompt, holder in ((bound, number), (bound + 1, number + 1)):
                ranking = router.rank(request("x", prompt=prompt), seen, begin + 5)
                assert ranking.chances == {holder: 1.0}


@examples(100, 1000)
@given(lengths=st.lists(st.integers(1, 50), min_size=1, max_size=40), workers=st.integers(1, 6))
def test_ranges_rise_and_hold_the_share(lengths: list[int], workers: int) -> None:
    """Bounds rise; the prompts in the first range are at least the share of a worker, if there is more than one."""
    share = sum(lengths) // workers
    bounds = bounds_of(lengths, share, workers)
    assert len(bounds) == workers - 1
    assert bounds == sorted(set(bounds)) or share == 0
    if bounds:
        assert sum(n for n in lengths if n <= bounds[0]) >= share


@pytest.mark.parametrize(
    ("product", "keys", "needed"),
    [
        ("sglang-router", {"version": "0.2.4", "policy": "manual"}, "0.3.2"),
        ("sglang-router", {"version": "0.1.9", "policy": "bucket"}, "0.3.2"),
        ("vllm-router", {"version": "0.1.12", "policy": "sticky_least_loaded"}, "0.1.17"),
        ("vllm-router", {"version": "0.1.12", "policy": "kv_aware"}, "0.1.17"),
    ],
)
def test_a_policy_that_the_version_lacks_is_an_error(product: str, keys: dict[str, str], needed: str) -> None:
    """One line names the policy, the version, and the version that is needed."""
    with pytest.raises(ValidationError) as caught:
        made(product, **keys)
    (problem,) = problems_of(caught.value)
    assert problem.path == ("policy",)
    assert keys["version"] in problem.text
    assert needed in problem.text


def test_defaults_are_those_of_the_products() -> None:
    """Thresholds 0.3, 64 and 1.5; eviction each 60 s to 2**26 characters, or each 120 s to 2**25; newest versions."""
    keys = (
        "version",
        "policy",
        "cache_threshold",
        "balance_abs_threshold",
        "balance_rel_threshold",
        "eviction_interval_secs",
        "max_tree_size",
    )
    sglang, vllm = SglangSettings(), VllmRouterSettings()
    assert [getattr(sglang, key) for key in keys] == ["0.3.2", "cache_aware", 0.3, 64, 1.5, 60, 2**26]
    assert [getattr(vllm, key) for key in keys] == ["0.1.17", "cache_aware", 0.3, 64, 1.5, 120, 2**25]


@pytest.mark.parametrize("product", ["sglang-router", "vllm-router"])
def test_numbers_about_failures(product: str) -> None:
    """5 retries after 50 ms * 1.5 up to 30 s, +-20 %; 10 failures in 120 s; checks each 60 s, 3 down, 2 up."""
    recovery = made(product).recovery
    assert (recovery.retries, recovery.first_wait_s, recovery.wait_factor) == (5, 0.05, 1.5)
    assert (recovery.longest_wait_s, recovery.jitter) == (30, 0.2)
    assert (recovery.breaker_failures, recovery.breaker_window_s, recovery.breaker_open_s) == (10, 120, 60)
    assert recovery.breaker_successes == 3
    assert (recovery.check_every_s, recovery.check_timeout_s) == (60, 5)
    assert (recovery.check_failures, recovery.check_successes) == (3, 2)
    assert recovery.source


def pair_choices(pair: PairRouter, pools: tuple[list[Replica], list[Replica]], n: int) -> list[tuple[Any, Any]]:
    """Return the choices of a few requests with different prompts, each ended before the next one."""
    found = []
    for number in range(n):
        asked = request(f"r{number}", prompt=7)
        prefill, decode = pair.choose(asked, *pools, 0.0)
        found.append((prefill.replica, decode.replica))
        at = [
            next(one for one in pool if one.number == choice.replica)
            for pool, choice in zip(pools, (prefill, decode), strict=True)
        ]
        pair.dispatched(asked, at[0], at[1], 0.0)
    return found


def pools() -> tuple[list[Replica], list[Replica]]:
    """Return two workers for prefill, 0 and 1, and three for decode, 2 to 4."""
    seen = replicas(5)
    return seen[:2], seen[2:]


def test_pools_have_their_own_counters() -> None:
    """Round robin over two and over three workers."""
    turns = SglangSettings(policy="round_robin")
    expected = [(i % 2, 2 + i % 3) for i in range(12)]
    assert pair_choices(sglang_pair(turns, turns, Random(0)), pools(), 12) == expected
    vllm = VllmRouterSettings(policy="round_robin")
    assert pair_choices(vllm_pair(vllm, vllm, Random(0)), pools(), 12) == expected


def test_cache_aware_of_sglang_has_no_tree_for_pools() -> None:
    """A prompt sent again can go anywhere; in an imbalanced pool, the first of the least loaded gets it."""
    keys = SglangSettings(balance_abs_threshold=2)
    pair = sglang_pair(keys, keys, Random(0))
    prefill, decode = pools()
    asked = request()
    pair.dispatched(asked, prefill[1], decode[0], 0.0)
    decode[0].in_flight = 3
    rankings = pair.rank(asked, prefill, decode, 0.0)
    assert [ranking.chances for ranking in rankings] == [{0: 0.5, 1: 0.5}, {3: 1.0}]


def test_the_decode_pool_of_vllm_router_gets_no_text() -> None:
    """Prefill has the prompt again at its worker; decode goes to the first of the least loaded."""
    pair = vllm_pair(VllmRouterSettings(), VllmRouterSettings(), Random(0))
    prefill, decode = pools()
    asked = request()
    pair.dispatched(asked, prefill[1], decode[1], 0.0)
    decode[0].in_flight = 1
    rankings = pair.rank(asked, prefill, decode, 0.0)
    assert [ranking.chances for ranking in rankings] == [{1: 1.0}, {3: 1.0}]


def test_pools_of_older_versions_are_refused() -> None:
    """Their rules are not known: one line says for which version they are."""
    with pytest.raises(InputError, match=r"0\.2\.4: .* version 0\.3\.2 only"):
        sglang_pair(SglangSettings(version="0.2.4"), SglangSettings(version="0.2.4"), Random(0))
    with pytest.raises(InputError, match=r"0\.1\.12: .* version 0\.1\.17 only"):
        vllm_pair(VllmRouterSettings(version="0.1.12"), VllmRouterSettings(version="0.1.12"), Random(0))
