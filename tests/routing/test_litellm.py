"""LiteLLM's strategies: weights, samples, minutes and limits by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.routing import ROUTERS, Router

from ..helpers.profiles import examples
from .replicas import Replica, made, p_value, replicas, request


def strategy(name: str, **keys: Any) -> Router:
    """Return the router of this strategy."""
    return made("litellm", 4, routing_strategy=name, **keys)


def serve(
    router: Router, seen: list[Replica], number: int, times: tuple[float, float, float], tokens: int = 10
) -> None:
    """Send a request to a replica at the first time; its first token is at the second, its end at the third."""
    began_s, first_s, end_s = times
    one = request(f"{number} {began_s}")
    router.rank(one, seen, began_s)
    router.dispatched(one, seen[number], began_s)
    router.first_token(one, seen[number], first_s)
    router.finished(one, seen[number], end_s, tokens=tokens, served=True)


def chances(router: Router, seen: list[Replica], now_s: float = 0.0, prompt: int = 100) -> dict[int, float]:
    """Return what could be chosen."""
    return dict(router.rank(request(prompt=prompt), seen, now_s).chances)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, {0: 0.25, 1: 0.25, 2: 0.5}),  # the fleet's weights
        ({"a-0": {"weight": 3}, "b-0": {"weight": 1}}, {0: 0.75, 2: 0.25}),
        ({"a": {"weight": 1}}, {0: 0.5, 1: 0.5}),  # a group; the other has no weight
        ({"a-0": {"rpm": 30}, "a-1": {"rpm": 10, "tpm": 7}, "b": {"tpm": 9}}, {0: 0.75, 1: 0.25}),
        ({"a-0": {"rpm": 30}, "a-1": {"weight": 1}}, {1: 1.0}),
        ({"b": {"tpm": 9}}, {2: 1.0}),
        ({"a-0": {"weight": 0}, "a-1": {"rpm": 7}}, {1: 1.0}),  # no weight at all: the next value
    ],
)
def test_shuffle_takes_the_first_weight_that_is_known(params: dict[str, Any], expected: dict[int, float]) -> None:
    """Weight before rpm before tpm before the fleet's weight; those without a value get nothing."""
    seen = replicas(3, name=["a-0", "a-1", "b-0"], group=["a", "a", "b"], weight=[1, 1, 2])
    router = strategy("simple-shuffle", litellm_params=params)
    assert chances(router, seen) == pytest.approx(expected)
    assert router.is_independent


def test_least_busy_counts_until_the_end_and_takes_the_first() -> None:
    """The first of those with the fewest requests that have not ended."""
    router, seen = strategy("least-busy"), replicas(3)
    for expected in (0, 1, 2, 0):
        assert chances(router, seen) == {expected: 1.0}
        router.dispatched(request(str(expected)), seen[expected], 0.0)
    router.finished(request("2"), seen[2], 1.0, tokens=10, served=False)
    assert chances(router, seen) == {2: 1.0}


def test_times_to_the_first_token_are_compared_for_streams() -> None:
    """Means 0.2 and 0.3 s, although the second is faster per token; the third is tried first."""
    router, seen = strategy("latency-based-routing"), replicas(3)
    serve(router, seen, 0, (0.0, 0.1, 9.0))
    serve(router, seen, 0, (10.0, 10.3, 19.0))
    serve(router, seen, 1, (0.0, 0.3, 0.4))
    assert chances(router, seen, 20.0) == {2: 1.0}
    serve(router, seen, 2, (20.0, 21.0, 21.1))
    assert chances(router, seen, 22.0) == {0: 1.0}


def test_times_per_token_are_compared_otherwise() -> None:
    """9 s and 0.4 s for ten tokens each."""
    router, seen = strategy("latency-based-routing", stream=False), replicas(2)
    router.rank(request(), seen[:1], 0.0)
    serve(router, seen[:1], 0, (0.0, 0.1, 9.0))
    assert router.rank(request(), seen, 9.0).scores["mean_s"] == {0: 0.9, 1: 0.0}
    serve(router, seen, 1, (9.0, 9.3, 9.4))
    # replica 1 was looked at while 0 had a sample, so it keeps one of 0 s
    assert router.rank(request(), seen, 10.0).scores["mean_s"] == pytest.approx({0: 0.9, 1: 0.04 / 2})


def test_a_buffer_lets_others_in() -> None:
    """With 0.5, a mean of 0.3 s is let in beside 0.2 s, and 0.31 s is not."""
    router, seen = strategy("latency-based-routing", routing_strategy_args={"lowest_latency_buffer": 0.5}), replicas(3)
    for number, first_s in enumerate((0.25, 0.375, 0.376)):
        serve(router, seen, number, (0.0, first_s, 1.0))
    assert chances(router, seen, 2.0) == {0: 0.5, 1: 0.5}


@examples(40, 1000)
@given(times=st.lists(st.integers(1, 64), min_size=1, max_size=30), kept=st.integers(1, 12))
def test_the_last_samples_count(times: list[int], kept: int) -> None:
    """The mean is of the last `max_latency_list_size` times."""
    router = strategy("latency-based-routing", routing_strategy_args={"max_latency_list_size": kept})
    seen = replicas(1)
    for i, time in enumerate(times):
        serve(router, seen, 0, (1000.0 * i, 1000.0 * i + time, 1000.0 * i + 99))
    last = times[-kept:]
    found = router.rank(request(), seen, 1000.0 * len(times)).scores["mean_s"][0]
    assert found == pytest.approx(sum(last) / len(last))


def test_samples_are_forgotten_after_the_last_by_an_hour() -> None:
    """At 3,601 s after the last end all are new again; requests that were not served leave no sample."""
    router, seen = strategy("latency-based-routing"), replicas(2)
    serve(router, seen, 0, (0.0, 0.5, 1.0))
    assert chances(router, seen, 3600.9) == {1: 1.0}
    assert chances(router, seen, 3601.0) == {0: 0.5, 1: 0.5}
    lost = request("lost")
    router.rank(lost, seen, 4000.0)
    router.dispatched(lost, seen[1], 4000.0)
    router.finished(lost, seen[1], 4001.0, tokens=3, served=False)
    assert chances(router, seen, 4002.0) == {0: 0.5, 1: 0.5}


def test_usage_counts_tokens_of_the_minute() -> None:
    """Prompt and answer count at the end of a request, and only until the minute is over."""
    router, seen = strategy("usage-based-routing-v2"), replicas(3)
    serve(router, seen, 0, (1.0, 2.0, 3.0), tokens=1)
    assert router.rank(request(), seen, 59.9).scores["tokens"] == {0: 101, 1: 0, 2: 0}
    assert chances(router, seen, 59.9) == {1: 0.5, 2: 0.5}
    assert chances(router, seen, 60.0) == pytest.approx({0: 1 / 3, 1: 1 / 3, 2: 1 / 3})


def test_usage_keeps_limits() -> None:
    """A replica is passed over if this prompt would exceed its tokens, or this request its requests, in the minute."""
    params = {"replica-0": {"tpm": 201}, "replica-1": {"rpm": 1}}
    router, seen = strategy("usage-based-routing-v2", litellm_params=params), replicas(2)
    serve(router, seen, 0, (1.0, 2.0, 3.0), tokens=1)
    assert chances(router, seen, 4.0) == {1: 1.0}
    serve(router, seen, 1, (4.0, 5.0, 6.0), tokens=99)
    assert chances(router, seen, 7.0, prompt=100) == {0: 1.0}
    assert chances(router, seen, 7.0, prompt=101) == {}
    refused = router.choose(request(prompt=101), seen, 7.0)
    assert (refused.replica, refused.refused) == (None, True)
    assert chances(router, seen, 61.0, prompt=101) == {0: 0.5, 1: 0.5}


def test_usage_gives_one_request_less_than_the_limit() -> None:
    """With a limit of 3 requests in the minute, two are sent there; with one of 1, one; with 0, none."""
    params = {"replica-0": {"rpm": 3}, "replica-1": {"rpm": 1}, "replica-2": {"rpm": 0}}
    router, seen = strategy("usage-based-routing-v2", litellm_params=params), replicas(3)
    for expected in ({0: 0.5, 1: 0.5}, {0: 0.5, 1: 0.5}, {1: 1.0}, {}):
        assert chances(router, seen) == expected
        router.dispatched(request(), seen[0 if 0 in expected else 1], 1.0)


def test_latency_keeps_limits_of_what_has_ended() -> None:
    """One of 1 request and one of 150 tokens: both are passed over once these have ended in the minute."""
    params = {"replica-0": {"rpm": 1}, "replica-1": {"tpm": 150}}
    router, seen = strategy("latency-based-routing", litellm_params=params), replicas(2)
    serve(router, seen, 0, (0.0, 0.1, 1.0))
    assert chances(router, seen, 2.0) == {1: 1.0}
    assert chances(router, seen, 2.0, prompt=150) == {1: 1.0}
    assert chances(router, seen, 2.0, prompt=151) == {}
    serve(router, seen, 1, (2.0, 2.2, 3.0))
    refused = router.choose(request(), seen, 4.0)
    assert (refused.replica, refused.refused) == (None, True)
    assert chances(router, seen, 60.0) == {0: 1.0}


@examples(40, 1000)
@given(
    times=st.lists(st.integers(1, 64), min_size=1, max_size=9), percentile=st.sampled_from([0.05, 0.25, 0.5, 0.8, 1.0])
)
def test_a_percentile_of_times_to_the_first_token(times: list[int], percentile: float) -> None:
    """The smallest time that at least this share of the samples does not exceed."""
    router, seen = strategy("latency-based-routing", routing_strategy_args={"ttft_percentile": percentile}), replicas(1)
    for i, time in enumerate(times):
        serve(router, seen, 0, (1000.0 * i, 1000.0 * i + time, 1000.0 * i + 99))
    found = router.rank(request(), seen, 1000.0 * len(times)).scores["mean_s"][0]
    assert sum(time <= found for time in times) >= percentile * len(times)
    assert sum(time < found for time in times) < percentile * len(times)


STRATEGIES = ["simple-shuffle", "least-busy", "latency-based-routing", "usage-based-routing-v2"]


@pytest.mark.parametrize("name", STRATEGIES)
def test_choices_have_the_frequencies_of_their_chances(name: str) -> None:
    """3,000 choices among replicas with different histories do not differ from the chances."""
    router, seen = strategy(name), replicas(5, healthy=[True, True, True, False, True], weight=[1, 2, 1, 1, 3])
    serve(router, seen, 0, (0.0, 0.5, 1.0))
    assert p_value(router, seen, request()) > 1e-4
    assert ROUTERS["litellm"].wants_first_tokens


@examples(40, 800)
@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans(), st.integers(0, 40)), max_size=25),
    name=st.sampled_from(STRATEGIES),
)
def test_whatever_ends_how_only_healthy_ones_are_chosen(steps: list, name: str) -> None:
    """Chances add up to 1, are of healthy replicas, and a choice is one of them; all is forgotten with its request."""
    router, seen = strategy(name), replicas(4)
    now_s = 0.0
    for i, (number, up, served, tokens) in enumerate(steps):
        now_s += 7.5
        seen[number].healthy = up
        seen[(number + 1) % 4].healthy = True
        ranking = router.rank(request(str(i)), seen, now_s)
        assert sum(ranking.chances.values()) == pytest.approx(1)
        assert all(seen[one].healthy for one in ranking.chances)
        chosen = router.choose(request(str(i)), seen, now_s).replica
        assert chosen in ranking.chances
        router.dispatched(request(str(i)), seen[chosen or 0], now_s)
        if tokens:
            router.first_token(request(str(i)), seen[chosen or 0], now_s + 1)
        router.finished(request(str(i)), seen[chosen or 0], now_s + 2, tokens=tokens, served=served)
