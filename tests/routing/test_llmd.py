"""llm-d's endpoint picker: scores, sums, filter and saturation by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from simqueue.request import Request
from simqueue.routing import ROUTERS, Signal
from simqueue.routing.llmd.keys import LlmDSettings
from simqueue.routing.llmd.scorers import BY_NAME, Seen

from .replicas import Replica, made, replicas, request


def scores(name: str, seen: list[Replica], matched: dict[int, int] | None = None, **keys: Any) -> list[float]:
    """Return the scores of a scorer for a prompt of 8 blocks."""
    settings = LlmDSettings.model_validate(keys)
    found = BY_NAME[f"{name}-scorer"].of(seen, Seen(matched or {}, 8, (2, 0), settings))
    return [found[one.number] for one in seen]


def prompted(name: str, *pieces: tuple[int, int, int]) -> Request:
    """Return a request with this prompt."""
    return Request(name, 0.0, sum(n for _, _, n in pieces), 10, prompt=pieces)


def test_queue_and_running_scores_lie_between_the_most_and_the_least() -> None:
    """Of 2, 5 and 12: 1, 7/10, 0; all equal: 1."""
    assert scores("queue", replicas(3, waiting=[2, 5, 12])) == pytest.approx([1, 0.7, 0])
    assert scores("running-requests-size", replicas(3, running=[12, 5, 2])) == pytest.approx([0, 0.7, 1])
    assert scores("queue", replicas(2, waiting=[4, 4])) == [1, 1]


def test_the_free_share_of_the_pool_is_a_score() -> None:
    """1 less what is used."""
    assert scores("kv-cache-utilization", replicas(2, kv_used=[0.25, 1.0])) == [0.75, 0]


def test_load_aware_falls_from_a_half() -> None:
    """0, 32, 128 and 200 waiting of a threshold of 128."""
    assert scores("load-aware", replicas(4, waiting=[0, 32, 128, 200])) == [0.5, 0.375, 0, 0]
    assert scores("load-aware", replicas(1, waiting=[5]), threshold=10) == [0.25]


def test_active_requests_are_compared_with_the_most() -> None:
    """0 and up to the idle threshold score 1, others what they have less than the most."""
    seen = replicas(4, in_flight=[0, 1, 3, 4])
    assert scores("active-request", seen) == [1, 0.75, 0.25, 0]
    assert scores("active-request", seen, idleThreshold=1, maxBusyScore=0.5) == [1, 1, 0.125, 0]


def test_tokens_in_flight_are_compared_with_a_threshold() -> None:
    """Linearly to 4,194,304, or to what the key says."""
    assert scores("token-load", replicas(3, in_flight_tokens=[0, 1_048_576, 9_000_000])) == [1, 0.75, 0]
    assert scores("token-load", replicas(1, in_flight_tokens=[5]), queueThresholdTokens=10) == [0.5]


def test_prefix_scores_are_shares_of_the_blocks() -> None:
    """6 of 8 blocks."""
    assert scores("prefix-cache", replicas(2), {1: 6}) == [0, 0.75]


def test_cold_requests_go_where_none_was_for_longest() -> None:
    """Replicas 1 and 3 never got a cold request, 2 did before 0: 1, then 2/3, 1/3 and 0. With a hit all score 0.5."""
    assert scores("no-hit-lru", replicas(4)) == pytest.approx([0, 1, 1 / 3, 2 / 3])
    assert scores("no-hit-lru", replicas(4), {3: 1}) == [0.5] * 4
    assert scores("no-hit-lru", replicas(1)) == [1]


def test_the_default_sum() -> None:
    """2 * queue + 2 * free KV + 3 * prefix: 2 + 1 + 0 against 0 + 2 + 3 * 4/6."""
    router = made("llm-d", prefix={"autoTune": False})
    seen = replicas(2, waiting=[0, 3], kv_used=[0.5, 0.0])
    router.dispatched(prompted("a", (1, 0, 64)), seen[1], 0.0)
    ranking = router.rank(prompted("b", (1, 0, 64), (2, 0, 26)), seen, 0.0)  # 90 tokens: 6 blocks, the last one short
    assert ranking.scores["sum"] == pytest.approx({0: 3.0, 1: 4.0})
    assert ranking.chances == {1: 1.0}
    assert router.reads == {Signal.WAITING, Signal.KV_USED}
    assert {age.every_s for age in ROUTERS["llm-d"].ages.values()} == {0.05}


def test_pickers() -> None:
    """The highest sum, at random among equal ones; by sums; all alike; by sums, all 0: all alike."""
    seen = replicas(3, kv_used=[0.0, 0.5, 0.5])
    only = {"scorers": {"kv-cache-utilization-scorer": 2}}
    weighted = {**only, "picker": "weighted-random-picker"}
    assert made("llm-d", **only).rank(request(), seen, 0.0).chances == {0: 1.0}
    assert made("llm-d", **weighted).rank(request(), seen, 0.0).chances == {0: 0.5, 1: 0.25, 2: 0.25}
    even = pytest.approx({0: 1 / 3, 1: 1 / 3, 2: 1 / 3})
    assert made("llm-d", **only, picker="random-picker").rank(request(), seen, 0.0).chances == even
    full = replicas(3, kv_used=[1.0, 1.0, 1.0])
    assert made("llm-d", **weighted).rank(request(), full, 0.0).chances == even


def test_the_index_is_as_large_as_the_cache() -> None:
    """With autoTune a replica with 64 tokens in blocks of 16 keeps 4 blocks; without, 31,250."""
    seen = replicas(2, kv_tokens=[64, 64], block_size=[16, 16])
    prefix_only = {"scorers": {"prefix-cache-scorer": 1}}
    tuned, fixed = made("llm-d", **prefix_only), made("llm-d", **prefix_only, prefix={"autoTune": False})
    for router in (tuned, fixed):
        for stream in (1, 2):
            router.rank(prompted("a", (stream, 0, 64)), seen, 0.0)
            router.dispatched(prompted("a", (stream, 0, 64)), seen[0], 0.0)
    old = prompted("b", (1, 0, 64))
    assert tuned.rank(old, seen, 0.0).scores["sum"] == {0: 0.0, 1: 0.0}
    assert fixed.rank(old, seen, 0.0).scores["sum"] == {0: 1.0, 1: 0.0}
    fixed.joined(seen[0], 1.0)
    assert fixed.rank(old, seen, 1.0).scores["sum"] == {0: 0.0, 1: 0.0}


def test_only_the_first_blocks_are_compared() -> None:
    """Of a prompt of 300 blocks, 256 are looked at; a prompt shorter than a block has none."""
    router = made("llm-d", scorers={"prefix-cache-scorer": 1})
    seen = replicas(2)
    router.rank(request(), seen, 0.0)
    router.dispatched(prompted("a", (1, 0, 4096)), seen[0], 0.0)
    assert router.rank(prompted("b", (1, 0, 4800)), seen, 0.0).scores["sum"] == {0: 1.0, 1: 0.0}
    assert router.rank(prompted("b", (1, 0, 15)), seen, 0.0).scores["sum"] == {0: 0.0, 1: 0.0}


def filtered(tokens: list[int], penalty: int = 0, sent: int = 160) -> dict[int, float]:
    """Return the chances of a prompt of ten blocks, the first of which were sent to replica 0, with the filter."""
    keys = {"explorationProbability": 0.25, "maxTokensInFlightPenalty": penalty}
    router = made("llm-d", scorers={}, **{"prefix-cache-affinity-filter": keys})
    seen = replicas(2, in_flight_tokens=tokens)
    router.rank(request(), seen, 0.0)
    router.dispatched(prompted("a", (1, 0, sent)), seen[0], 0.0)
    return dict(router.rank(prompted("b", (1, 0, 160)), seen, 0.0).chances)


def test_the_filter_keeps_those_that_have_most_of_the_prompt() -> None:
    """8 of 10 blocks are enough, 7 are not; a quarter explores; a penalty in tokens lets all in."""
    assert filtered([0, 0]) == {0: 0.875, 1: 0.125}
    assert filtered([0, 0], sent=128) == {0: 0.875, 1: 0.125}
    assert filtered([0, 0], sent=112) == {0: 0.5, 1: 0.5}
    assert filtered([101, 0], penalty=100) == {0: 0.5, 1: 0.5}
    assert filtered([100, 0], penalty=100) == {0: 0.875, 1: 0.125}


@pytest.mark.parametrize(
    ("values", "full"),
    [
        ({"waiting": [5, 5]}, True),
        ({"waiting": [9, 0]}, False),  # mean of 9/5 and 0
        ({"waiting": [10, 0]}, True),
        ({"kv_used": [0.8, 0.8]}, True),
        ({"waiting": [5, 0], "kv_used": [0.0, 0.79]}, False),
        ({"seen_s": [9.7, 9.7]}, True),  # last looked at 0.3 s ago
        ({"seen_s": [9.81, 9.81]}, False),
        ({"seen_s": [9.7, 9.9]}, False),
        ({"seen_s": [9.7, 9.9], "waiting": [0, 5]}, True),
    ],
)
def test_a_fleet_is_full_by_queues_pools_and_silence(values: dict[str, list[float]], full: bool) -> None:
    """The mean of the larger of queue / 5 and use / 0.8, and 1 for signals older than 0.2 s, is at least 1."""
    seen = replicas(2, **{"seen_s": [10.0, 10.0], **values})
    urgent, patient = request(), replace(request(), priority=1)
    plain, controlled = made("llm-d"), made("llm-d", flowControl=True)
    assert plain.choose(urgent, seen, 10.0).replica is not None
    refused = plain.choose(patient, seen, 10.0)
    assert (refused.replica is None, refused.refused) == (full, full)
    waits = controlled.choose(urgent, seen, 10.0)
    assert (waits.replica is None, waits.refused) == (full, False)


@pytest.mark.parametrize(
    ("keys", "values", "full"),
    [
        ({}, {"in_flight": [150, 50]}, True),
        ({}, {"in_flight": [150, 49]}, False),
        ({"maxConcurrency": 2}, {"in_flight": [4, 0]}, True),
        ({"concurrencyMode": "tokens"}, {"in_flight_tokens": [1_500_000, 500_000]}, True),
        ({"concurrencyMode": "tokens"}, {"in_flight_tokens": [1_500_000, 499_999]}, False),
    ],
)
def test_a_fleet_is_full_by_its_own_counts(keys: dict[str, Any], values: dict[str, list[int]], full: bool) -> None:
    """All requests, or tokens, against what all replicas may have."""
    router = made("llm-d", flowControl=True, saturationDetector={"kind": "concurrency-detector", **keys}, scorers={})
    assert (router.choose(request(), replicas(2, **values), 0.0).replica is None) is full
    assert router.reads == frozenset()


def test_scorers_are_known_by_name() -> None:
    """A misspelt scorer is an error with the nearest name, a negative weight one with the scorer."""
    with pytest.raises(ValidationError, match="did you mean 'queue-scorer'"):
        LlmDSettings.model_validate({"scorers": {"queue-scorrer": 1}})
    with pytest.raises(ValidationError, match="must be at least 0"):
        LlmDSettings.model_validate({"scorers": {"queue-scorer": -1}})
