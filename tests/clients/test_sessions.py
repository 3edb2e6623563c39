"""Promises of conversations and shared prompts: context grows, and requests state which tokens they share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simqueue.workload import WorkloadSettings
from simqueue.workload.generate import generate

from .conftest import MANY_SEATS, Play, constant

STEP = 2.0**-7
VLLM = {
    "engine": "vllm",
    "version": "0.33.0",
    "max_num_seqs": 256,
    "max_num_batched_tokens": 2048,
    "async_scheduling": False,
}


def chats(**keys: Any) -> dict[str, Any]:
    """Return two conversations of three turns: 16 new tokens, 10 answered, half a second apart, 32 before them."""
    sessions = {
        "arrivals": {"process": "constant", "rate_rps": 1.0},
        "num_sessions": 2,
        "turns": constant(3),
        "think_s": 0.5,
    }
    lengths = {"prompt_tokens": constant(16), "output_tokens": constant(10), "system_prompt": {"tokens": 32}}
    return {"sessions": sessions, **lengths, **keys}


def test_context_grows_by_what_was_said(play: Play) -> None:
    """The prompt of turn j is the system prompt, earlier turns and answers, and the new tokens, after a think time."""
    rows = play(chats()).requests
    mine = rows[rows["session"] == "session-1"]
    assert mine["request_id"].tolist() == ["session-1.0", "session-1.1", "session-1.2"]
    assert mine["prompt_tokens"].tolist() == [48, 74, 100]
    span_s = 10 * STEP
    assert mine["arrival_s"].tolist() == [1.0, 1.5 + span_s, 2.0 + 2 * span_s]


def test_a_prefix_cache_finds_what_was_said(play: Play) -> None:
    """Later turns find the whole blocks of their history, other conversations those of the system prompt."""
    rows = play(chats(), VLLM).requests.set_index("request_id")
    cached = {name: int(rows.loc[name, "cached_tokens"]) for name in rows.index}
    # At its end a turn of P prompt and O output tokens has KV of P + O - 1 tokens: 57 and 83, in blocks of 16.
    assert (cached["session-0.0"], cached["session-0.1"], cached["session-0.2"]) == (0, 48, 80)
    assert (cached["session-1.0"], cached["session-1.1"], cached["session-1.2"]) == (32, 48, 80)


def test_a_turn_that_fails_ends_its_conversation(play: Play) -> None:
    """After a second turn that times out the third is not sent; the other conversation continues."""
    block = {"requests": [{"id": "b", "arrival_s": 0.5, "prompt_tokens": 1, "output_tokens": 128}]}
    workloads = {"talk": chats(timeout_s=16 * STEP), "block": block}
    rows = play({}, {**MANY_SEATS, "max_num_seqs": 1}, workloads=workloads).requests
    assert rows[rows["session"] == "talk/session-0"]["status"].tolist() == ["finished", "timed_out"]
    assert rows[rows["session"] == "talk/session-1"]["status"].iloc[0] == "timed_out"


def test_turns_are_the_same_whatever_the_policy(play: Play) -> None:
    """Lengths, think times and token identities of every turn do not depend on the policy, or on its speed."""
    lengths = {
        "prompt_tokens": {"distribution": "lognormal", "median": 40, "sigma": 1.0},
        "output_tokens": {"distribution": "geometric", "mean": 20},
    }
    sessions = {
        "arrivals": {"process": "poisson", "rate_rps": 3.0},
        "turns": {"distribution": "geometric", "mean": 3},
        "think_s": {"distribution": "lognormal", "median_s": 0.4, "sigma": 0.5},
    }
    workload = {"sessions": sessions, "arrivals_for_s": 10.0, **lengths}
    seen = [
        play(workload, policy).requests.sort_values("request_id", ignore_index=True)
        for policy in (MANY_SEATS, {"scheduler": "static", "max_num_seqs": 2})
    ]
    columns = ["request_id", "prompt_tokens", "output_tokens"]
    assert seen[0][columns].equals(seen[1][columns])
    first = seen[0].sort_values(["session", "arrival_s"])
    gaps = (first["arrival_s"] - first.groupby("session")["finish_s"].shift()).dropna()
    assert 0.3 < gaps.median() < 0.55


@pytest.mark.parametrize("variants", [1, 4])
def test_system_prompts_are_shared_in_an_open_stream(variants: int, play: Play) -> None:
    """For any arrivals: all requests but the first of each variant find the whole blocks of the system prompt."""
    workload = {
        "arrivals": {"process": "constant", "rate_rps": 5.0},
        "num_requests": 40,
        "prompt_tokens": constant(20),
        "output_tokens": constant(2),
        "system_prompt": {"tokens": 64, "variants": variants},
    }
    rows = play(workload, VLLM).requests
    assert (rows["prompt_tokens"] == 84).all()
    assert (rows["cached_tokens"] == 0).sum() == variants
    assert set(rows["cached_tokens"]) == {0, 64}


def test_lengths_can_be_correlated_without_changing_their_distributions() -> None:
    """The copula gives the rank correlation 6/pi asin(r/2) and leaves both distributions unchanged (|z| < 4)."""
    from pathlib import Path

    from scipy import stats

    lengths = {
        "prompt_tokens": {"distribution": "lognormal", "median": 5000, "sigma": 0.9},
        "output_tokens": {"distribution": "exponential", "mean": 3000},
    }
    arrivals = {"arrivals": {"process": "poisson", "rate_rps": 1.0}, "num_requests": 40_000}

    def drawn(correlation: float) -> tuple[np.ndarray, np.ndarray]:
        keys = {**arrivals, **lengths, "prompt_output_correlation": correlation}
        requests = generate(WorkloadSettings.model_validate(keys), seed=3, base_dir=Path()).requests
        return np.array([r.prompt_tokens for r in requests]), np.array([r.output_tokens for r in requests])

    plain, tied = drawn(0.0), drawn(0.6)
    assert (plain[0] == tied[0]).all()
    rank = stats.spearmanr(*tied).statistic
    assert rank == pytest.approx(6 / np.pi * np.arcsin(0.3), abs=4 / np.sqrt(40_000))
    assert stats.kstest(tied[1] + np.random.default_rng(1).random(40_000), "expon", args=(0, 3000)).pvalue > 0.01
    opposite = drawn(-1.0)
    assert stats.spearmanr(*opposite).statistic == pytest.approx(-1, abs=1e-6)


def test_case_31_shared_hash_ids_are_hit(play: Play, tmp_path: Any) -> None:
    """Two rows that share one hash id of 512 tokens share 32 blocks of 16, for any block size of the trace.

    Origin: guidellm#948, ai-dynamo/aiperf#581, kvcache-ai/Mooncake#1266, where replays with the wrong block size were
    wrong in silence.
    """
    trace = tmp_path / "pair.jsonl"
    trace.write_text(
        '{"timestamp":0,"input_length":1000,"output_length":8,"hash_ids":[0,1]}\n'
        '{"timestamp":5000,"input_length":700,"output_length":8,"hash_ids":[0,2]}\n'
    )
    workload = {"trace": {"format": "mooncake", "path": str(trace), "block_tokens": 512}}
    assert play(workload, VLLM).requests["cached_tokens"].tolist() == [0, 512]
