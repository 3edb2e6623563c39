"""Scheduling behaviour: what tells one policy from another."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest


def ms(seconds: float) -> Any:
    """Return milliseconds to compare with: sums of steps agree to 1e-9."""
    return pytest.approx(1000 * seconds, rel=1e-9)


LONG_AND_SHORT = [("long", 0.0, 8192, 2), ("short", 0.005, 32, 2)]


@pytest.mark.parametrize(
    ("chunk_tokens", "short_s", "long_s"), [(None, 0.165, 0.16), (256, 0.015, 0.32)], ids=["no cap", "cap 256"]
)
def test_case_18_a_cap_per_request_lets_short_prompts_pass(
    chunk_tokens: int | None, short_s: float, long_s: float, toy: Any, play: Any, by_id: Any
) -> None:
    """One long prompt takes the whole token budget unless a chunk caps it; the cap doubles its own TTFT.

    Origin: vllm-project/vllm#10774, #14003, #57413, #21674. The times come from an independent reference.
    """
    policy = {"scheduler": "chunked", "max_num_batched_tokens": 512, "chunk_tokens": chunk_tokens}
    requests = by_id(play(toy(LONG_AND_SHORT, {"chunked": policy})))
    assert requests.loc["short", "ttft_ms"] == ms(short_s)
    assert requests.loc["long", "ttft_ms"] == ms(long_s)


STEADY_PROMPTS = [("dec", 0.0, 16, 100)] + [(f"p{i}", 0.005 + 0.01 * i, 512, 1) for i in range(100)]
PREFILL_FIRST_OR_MIXED = {
    "prefill_first": {"scheduler": "continuous", "prefill": "separate", "max_num_batched_tokens": 512},
    "mixed": {"scheduler": "chunked", "max_num_batched_tokens": 512},
}


def test_case_19_prefill_first_starves_decodes(toy: Any, play: Any, by_id: Any, summary_of: Any) -> None:
    """Steps of prompts alone keep a decode waiting for 1.01 s; mixed steps never do, for 10 ms more of TTFT.

    Origin: sgl-project/sglang#32549, ROCm/ATOM#1835. The times come from an independent reference.
    """
    result = play(toy(STEADY_PROMPTS, PREFILL_FIRST_OR_MIXED))
    separate, mixed = by_id(result, "prefill_first"), by_id(result, "mixed")
    assert (separate.loc["dec", "max_itl_ms"], mixed.loc["dec", "max_itl_ms"]) == (ms(1.01), ms(0.01))
    assert (separate.loc["p99", "ttft_ms"], mixed.loc["p99", "ttft_ms"]) == (ms(0.015), ms(0.025))
    # the tail is in the summary, where the mean alone would hide it
    starved, steady = summary_of(result, "prefill_first"), summary_of(result, "mixed")
    assert (starved["max_itl_ms"], steady["max_itl_ms"]) == (ms(1.01), ms(0.01))
    assert starved["mean_itl_ms"] < 3 * steady["mean_itl_ms"]


def test_case_19_the_p99_of_itl_shows_a_starving_wait(toy: Any, play: Any, summary_of: Any) -> None:
    """Of 98 gaps one is 1.01 s long: linear interpolation puts p99 0.03 of the way up to it (same reports)."""
    requests = [("dec", 0.0, 16, 99), *STEADY_PROMPTS[1:]]
    result = play(toy(requests, PREFILL_FIRST_OR_MIXED))
    # 98 gaps: position 0.99 * 97 = 96.03 among ranks 0 to 97
    assert summary_of(result, "prefill_first")["p99_itl_ms"] == ms(0.01 + 0.03 * (1.01 - 0.01))
    assert summary_of(result, "mixed")["p99_itl_ms"] == ms(0.01)


SHORT_ANSWERS = [(name, 0.0, 16, 10) for name in "abc"]
ONE_LONG_ANSWER = [*SHORT_ANSWERS, ("d", 0.0, 16, 100), ("e", 0.001, 16, 10)]
FOUR_SEATS = {
    "static": {"scheduler": "static", "max_num_seqs": 4},
    "continuous": {"scheduler": "continuous", "max_num_seqs": 4},
    "chunked": {"scheduler": "chunked", "max_num_seqs": 4},
}


def test_case_22_a_wave_holds_its_slots_until_the_slowest_ends(
    toy: Any, play: Any, by_id: Any, summary_of: Any
) -> None:
    """A fifth request waits out a static wave of four, and gets the first free seat elsewhere; idle slots are told.

    Origin: a contrast case without a report of its own (background: vllm-project/vllm#4563).
    """
    result = play(toy(ONE_LONG_ANSWER, FOUR_SEATS))
    static = by_id(result, "static")
    assert static.loc["e", "ttft_ms"] == ms(1.009)
    assert static.loc[["a", "b", "c", "d"], "finish_s"].tolist() == pytest.approx([1.0] * 4, rel=1e-9)
    for policy in ("continuous", "chunked"):
        requests = by_id(result, policy)
        assert requests.loc["e", "ttft_ms"] == ms(0.109)
        assert requests.loc[["a", "b", "c", "d"], "finish_s"].tolist() == pytest.approx([0.1, 0.1, 0.1, 1], rel=1e-9)
    # 4 slots for 100 steps hold 130 tokens, then one slot for 10 steps holds 10
    assert summary_of(result, "static")["idle_slot_share"] == pytest.approx(270 / 410, rel=1e-12)
    assert [summary_of(result, policy)["idle_slot_share"] for policy in ("continuous", "chunked")] == [None, None]


def test_case_22_tokens_of_a_wave_are_timed_as_they_are_made(toy: Any, play: Any, by_id: Any) -> None:
    """In a static wave a short answer has its tokens at 10 ms each, though its seat is freed with the wave."""
    requests = by_id(play(toy(ONE_LONG_ANSWER, {"static": FOUR_SEATS["static"]})), "static")
    assert requests.loc["a", "ttft_ms"] == ms(0.01)
    assert requests.loc["a", "max_itl_ms"] == ms(0.01)
    assert requests.loc["a", "e2el_ms"] == ms(1.0)


def test_a_scheduler_without_engine_can_have_a_prefix_cache(toy: Any, play: Any, by_id: Any, summary_of: Any) -> None:
    """`prefix_caching: true` in a scenario: of two equal prompts of 40 tokens the second finds two blocks of 16.

    The hit needs no computing: with 8 tokens a step the first prompt takes five steps, the second, 8 tokens, one.
    """
    chunked = {"scheduler": "chunked", "max_num_seqs": 1, "max_num_batched_tokens": 8}
    scenario = toy([("a", 0.0, 40, 1), ("b", 0.0, 40, 1)], {"chunked": chunked})
    scenario["kv_cache"]["prefix_caching"] = True
    for request in scenario["workload"]["requests"]:
        request["prompt"] = [[1, 0, 40]]
    result = play(scenario)
    requests = by_id(result)
    assert requests["cached_tokens"].to_dict() == {"a": 0, "b": 32}
    assert requests["first_token_s"].to_dict() == pytest.approx({"a": 0.05, "b": 0.06})
    summary = summary_of(result)
    assert (summary["prefix_queried_tokens"], summary["prefix_hit_rate"]) == (80, 32 / 80)


def test_replica_is_the_one_that_served_the_request_or_none(toy: Any, play: Any, by_id: Any) -> None:
    """There is one replica, 0; a request that is rejected at its arrival has none."""
    requests = by_id(play(toy([("served", 0.0, 40, 1), ("rejected", 0.0, 400, 1)], blocks=4)))
    assert requests["status"].to_dict() == {"served": "finished", "rejected": "rejected"}
    replicas = requests["replica"]
    assert replicas["served"] == 0
    assert pd.isna(replicas["rejected"])
