"""The checks that the course module asks of a simulator, on its own traffic."""

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
def test_everybody_finishes_and_no_token_is_lost_or_doubled(policy: Any, clock: str, asked: Any, measured: Any) -> None:
    """All requests come back filled in, after they arrived; sum(out_len) / tok_s is the wall time."""
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
    """Two runs agree in every digit of every time."""
    first, again = (simulate(policy, asked(CLOCKS[0])) for _ in range(2))
    assert first == again


def test_the_order_in_which_requests_are_given_does_not_matter(asked: Any) -> None:
    """Requests are played by arrival, and returned in the order given."""
    in_order, end_ms = simulate("chunked", asked(CLOCKS[0]))
    shuffled = asked(CLOCKS[0])
    random.Random(3).shuffle(shuffled)
    again, end_again_ms = simulate("chunked", shuffled)
    assert [req.rid for req in again] == [req.rid for req in shuffled]
    assert sorted(again, key=lambda req: req.rid) == in_order
    assert end_again_ms == end_ms


@pytest.mark.parametrize("clock", CLOCKS)
def test_chunked_beats_continuous_on_the_tail_of_tpot(clock: str, asked: Any, measured: Any) -> None:
    """Decodes that never wait for a whole prompt have a lower TPOT p95, under both clocks."""
    tail = {policy: measured(*simulate(policy, asked(clock)))["tpot_p95"] for policy in ("continuous", "chunked")}
    assert tail["chunked"] < tail["continuous"]


@pytest.mark.parametrize("clock", CLOCKS)
def test_continuous_and_chunked_have_about_the_same_throughput(clock: str, asked: Any, measured: Any) -> None:
    """Their tokens per second are within 15 % of each other, down to chunks of 8 tokens."""
    base = measured(*simulate("continuous", asked(clock)))["tok_s"]
    for chunk in (512, 32, 8):
        tok_s = measured(*simulate("chunked", asked(clock), chunk=chunk))["tok_s"]
        assert tok_s == pytest.approx(base, rel=0.15), chunk


def test_static_loses_ttft_by_an_order_of_magnitude(asked: Any, measured: Any) -> None:
    """With arrivals in milliseconds static's TTFT is more than ten times that of the others, at p50 and at p95."""
    found = {policy: measured(*simulate(policy, asked(CLOCKS[0]))) for policy in POLICIES}
    for metric in ("ttft_p50", "ttft_p95"):
        for policy in ("continuous", "chunked"):
            assert found["static"][metric] > 10 * found[policy][metric]


def test_with_everybody_there_at_once_static_loses_three_to_four_times(asked: Any, measured: Any) -> None:
    """As the module was published, all arrive within 30 ms and wait under every policy: static is 3 to 4 times worse.

    So the order of magnitude does not hold there: it is a statement about a server that is not overloaded.
    """
    found = {policy: measured(*simulate(policy, asked(CLOCKS[1]))) for policy in POLICIES}
    for policy in ("continuous", "chunked"):
        assert 3 < found["static"]["ttft_p95"] / found[policy]["ttft_p95"] < 4


@pytest.fixture
def moves(recipe: Any, as_requests: Any, measured: Any) -> dict[tuple[str, str], list[float]]:
    """How far each p95 of seeds 0 to 8 lies from that of seed 1234, relative: (policy, metric) -> nine numbers."""

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


def test_another_seed_moves_p95_by_a_tenth_only_as_a_rule(moves: dict[tuple[str, str], list[float]]) -> None:
    """The module expects another seed to move p95 within 10 %; that is too strict as it stands.

    For continuous and chunked it holds in the middle of nine seeds, while single ones move up to 20 %. For the TTFT of
    static it holds for none of them: its queue grows over the whole run, so its tail follows the number of arrivals,
    which alone differs by up to 18 % between seeds.
    """
    for policy in ("continuous", "chunked"):
        for metric in ("ttft_p95", "tpot_p95"):
            assert np.median(moves[policy, metric]) < 0.10
            assert max(moves[policy, metric]) < 0.20
    assert max(moves["continuous", "ttft_p95"]) > 0.10
    assert min(moves["static", "ttft_p95"]) > 0.10


def test_a_single_token_ends_with_the_prefill() -> None:
    """Output 1: the first token is the last, in every policy; its step has no decode in it."""
    for policy in POLICIES:
        (req,), end_ms = simulate(policy, [Req(0, 5.0, 100, 1)])
        assert req.first_tok == req.finish == end_ms
        assert req.finish == pytest.approx(5.0 + 0.2 + 0.02 * 100, rel=1e-12)


def test_one_request_alone_by_hand() -> None:
    """1000 prompt and 3 output tokens take steps of 20.2, 0.63 and 0.63 ms; chunks of 512 cost one overhead more."""
    for policy, first_ms in zip(POLICIES, (20.2, 20.2, 20.4), strict=True):
        (req,), _ = simulate(policy, [Req(0, 0.0, 1000, 3)])
        assert req.first_tok == pytest.approx(first_ms, rel=1e-12)
        assert req.finish == pytest.approx(first_ms + 2 * 0.63, rel=1e-12)


@pytest.mark.parametrize("policy", POLICIES)
def test_nobody_at_all(policy: Any) -> None:
    """Without requests nothing happens and the end is 0."""
    assert simulate(policy, []) == ([], 0.0)


def test_an_unknown_policy_is_refused_with_the_nearest_name() -> None:
    """A misspelt policy is an error that names the one that was meant."""
    with pytest.raises(InputError, match="did you mean 'chunked'"):
        simulate("chunkd", [Req(0, 0.0, 10, 2)])  # type: ignore[arg-type] # a user's mistake
