"""The checks that the course module requires of a simulator, with its own traffic."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from simqueue.errors import InputError
from simqueue.module08 import PolicyName, Req, simulate

CLOCKS = ("arrivals_in_milliseconds", "arrival_seconds_read_as_milliseconds")
POLICIES: tuple[PolicyName, ...] = ("static", "continuous", "chunked")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("clock", CLOCKS)
def test_all_requests_finish_and_no_token_is_lost_or_counted_twice(
    policy: Any, clock: str, asked: Any, measured: Any
) -> None:
    """All requests are set and end after their arrival; sum(out_len) / tok_s is the duration."""
    given = asked(clock)
    requests, end_ms = simulate(policy, given)
    assert all(mine is yours for mine, yours in zip(requests, given, strict=True)), "the same objects, in order"
    for req in requests:
        assert req.first_tok is not None
        assert req.finish is not None
        assert req.arrival < req.first_tok <= req.finish <= end_ms
        assert (req.prefill_done, req.generated) == (req.prompt_len, req.out_len)
    tokens = sum(req.generated for req in requests)
    assert tokens / measured(requests, end_ms)["tok_s"] == pytest.approx(end_ms / 1000, rel=1e-12)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_traffic_gives_the_same_bits(policy: Any, asked: Any) -> None:
    """Two runs give the same times, bit for bit."""
    first, again = (simulate(policy, asked(CLOCKS[0])) for _ in range(2))
    assert first == again


def test_the_order_of_the_arguments_does_not_matter(asked: Any) -> None:
    """Requests are simulated by arrival, and returned in the given order."""
    in_order, end_ms = simulate("chunked", asked(CLOCKS[0]))
    shuffled = asked(CLOCKS[0])
    random.Random(3).shuffle(shuffled)
    again, end_again_ms = simulate("chunked", shuffled)
    assert [req.rid for req in again] == [req.rid for req in shuffled]
    assert sorted(again, key=lambda req: req.rid) == in_order
    assert end_again_ms == end_ms


@pytest.mark.parametrize("clock", CLOCKS)
def test_chunked_beats_continuous_on_the_tail_of_tpot(clock: str, asked: Any, measured: Any) -> None:
    """Chunked has a lower TPOT p95 than continuous with both clocks, since decodes never wait for a whole prompt."""
    tail = {policy: measured(*simulate(policy, asked(clock)))["tpot_p95"] for policy in ("continuous", "chunked")}
    assert tail["chunked"] < tail["continuous"]


@pytest.mark.parametrize("clock", CLOCKS)
def test_continuous_and_chunked_have_about_the_same_throughput(clock: str, asked: Any, measured: Any) -> None:
    """Tokens per second differ by at most 15 %, down to chunks of 8 tokens."""
    base = measured(*simulate("continuous", asked(clock)))["tok_s"]
    for chunk in (512, 32, 8):
        tok_s = measured(*simulate("chunked", asked(clock), chunk=chunk))["tok_s"]
        assert tok_s == pytest.approx(base, rel=0.15), chunk


def test_static_loses_ttft_by_an_order_of_magnitude(asked: Any, measured: Any) -> None:
    """With arrivals in milliseconds TTFT p50 and p95 of static are more than ten times those of the others."""
    found = {policy: measured(*simulate(policy, asked(CLOCKS[0]))) for policy in POLICIES}
    for metric in ("ttft_p50", "ttft_p95"):
        for policy in ("continuous", "chunked"):
            assert found["static"][metric] > 10 * found[policy][metric]


def test_with_all_requests_at_once_static_is_three_to_four_times_worse(asked: Any, measured: Any) -> None:
    """As published, all requests arrive within 30 ms and wait under each policy; static is 3 to 4 times worse.

    An order of magnitude is only lost on a server that is not overloaded.
    """
    found = {policy: measured(*simulate(policy, asked(CLOCKS[1]))) for policy in POLICIES}
    for policy in ("continuous", "chunked"):
        assert 3 < found["static"]["ttft_p95"] / found[policy]["ttft_p95"] < 4


@pytest.fixture
def moves(recipe: Any, as_requests: Any, measured: Any) -> dict[tuple[str, str], list[float]]:
    """Relative distance of each p95 of seeds 0 to 8 from that of seed 1234: (policy, metric) -> nine numbers."""

    def metrics_of(policy: PolicyName, seed: int) -> dict[str, float]:
        found: dict[str, float] = measured(*simulate(policy, as_requests(recipe(seed), CLOCKS[0])))
        return found

    table: dict[tuple[str, str], list[float]] = {}
    for policy in POLICIES:
        base = metrics_of(policy, 1234)
        others = [metrics_of(policy, seed) for seed in range(9)]
        for metric in ("ttft_p95", "tpot_p95"):
            table[policy, metric] = [abs(other[metric] / base[metric] - 1) for other in others]
    return table


def test_another_seed_usually_moves_p95_by_less_than_a_tenth(moves: dict[tuple[str, str], list[float]]) -> None:
    """The module expects another seed to move p95 by less than 10 %, which is too strict.

    For continuous and chunked it holds for the median of nine seeds, and single seeds move p95 by up to 20 %. For TTFT
    of static it holds for no seed: the queue of static grows over the whole run, so its tail depends on the number of
    arrivals, which differs by up to 18 % between seeds.
    """
    for policy in ("continuous", "chunked"):
        for metric in ("ttft_p95", "tpot_p95"):
            assert np.median(moves[policy, metric]) < 0.10
            assert max(moves[policy, metric]) < 0.20
    assert max(moves["continuous", "ttft_p95"]) > 0.10
    assert min(moves["static", "ttft_p95"]) > 0.10


def test_a_single_token_ends_with_the_prefill() -> None:
    """With one output token the first token is the last under each policy; the step has no decode."""
    for policy in POLICIES:
        (req,), end_ms = simulate(policy, [Req(0, 5.0, 100, 1)])
        assert req.first_tok == req.finish == end_ms
        assert req.finish == pytest.approx(5.0 + 0.2 + 0.02 * 100, rel=1e-12)


def test_one_request_alone_by_hand() -> None:
    """1000 prompt and 3 output tokens take steps of 20.2, 0.63 and 0.63 ms; chunks of 512 add one overhead."""
    for policy, first_ms in zip(POLICIES, (20.2, 20.2, 20.4), strict=True):
        (req,), _ = simulate(policy, [Req(0, 0.0, 1000, 3)])
        assert req.first_tok == pytest.approx(first_ms, rel=1e-12)
        assert req.finish == pytest.approx(first_ms + 2 * 0.63, rel=1e-12)


@pytest.mark.parametrize("policy", POLICIES)
def test_no_requests(policy: Any) -> None:
    """Without requests the end is 0."""
    assert simulate(policy, []) == ([], 0.0)


def test_an_unknown_policy_is_an_error_with_the_nearest_name() -> None:
    """A misspelt policy is an error that names the nearest policy."""
    misspelt: Any = "chunkd"
    with pytest.raises(InputError, match="did you mean 'chunked'"):
        simulate(misspelt, [Req(0, 0.0, 10, 2)])
