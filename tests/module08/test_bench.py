"""The bench: waves and refilled slots, in torch, without a network, and simulated."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from simqueue.errors import InputError
from simqueue.module08 import bench
from simqueue.module08.bench import BENCH_POLICIES, PROMPT_TOKENS, BenchRun, Call, SlotUse, module_lengths, planned
from simqueue.steptime.linear import LinearStepTime
from studies.module08.calibrated import CallTime, call_times, fitted, simulated

CALLS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "module08" / "bench_calls.json").read_text(encoding="utf-8")
)
COST = LinearStepTime(0.002, 1e-5, 0.001, 3e-5, 0.0)


def test_the_lengths_are_the_modules() -> None:
    """Seed 7 gives the 64 answer lengths of the reference, 11,176 tokens in total."""
    assert module_lengths() == CALLS["output_tokens"]
    assert sum(module_lengths()) == CALLS["total_tokens"]


@pytest.mark.slow
@pytest.mark.parametrize("policy", BENCH_POLICIES)
def test_in_torch_tokens_and_calls_are_exact(policy: Any) -> None:
    """The network generates all tokens, in as many calls as in the reference; in batches of 8 it would take longer."""
    generated, seconds, calls = bench(policy, CALLS["output_tokens"], 32)
    assert generated == CALLS["total_tokens"]
    assert calls == CALLS["batch_32"][f"{policy}_calls"]
    assert seconds > 0


@pytest.mark.parametrize("policy", BENCH_POLICIES)
@pytest.mark.parametrize("batch_size", [8, 32])
def test_planned_and_simulated_calls_are_the_same(policy: Any, batch_size: int) -> None:
    """Calls without a network and steps of the simulator are as many as in the reference."""
    expected = CALLS[f"batch_{batch_size}"][f"{policy}_calls"]
    run = planned(policy, CALLS["output_tokens"], batch_size)
    assert (run.generated, len(run.calls)) == (CALLS["total_tokens"], expected)
    assert simulated(policy, CALLS["output_tokens"], batch_size, COST).calls == expected


@pytest.mark.parametrize("policy", BENCH_POLICIES)
def test_the_simulated_time_is_the_sum_of_the_calls(policy: Any) -> None:
    """With a given cost per call, simulated tokens/s are all tokens divided by the time of all calls."""
    run = planned(policy, CALLS["output_tokens"], 8)
    total_s = sum(
        0.002 + (1e-5 * call.prefill_tokens if call.prefill_tokens else 0.001 + 3e-5 * call.rows) for call in run.calls
    )
    said = simulated(policy, CALLS["output_tokens"], 8, COST).tokens_per_s
    assert said == pytest.approx(CALLS["total_tokens"] / total_s, rel=1e-9)


def test_slots_by_hand() -> None:
    """Answers of 1, 3 and 2 tokens on two slots: in the wave the first slot stays idle, otherwise it is refilled."""
    waves = planned("pad_to_max", [1, 3, 2], 2)
    assert waves.slots == [SlotUse(0, 0, 0, 2, 4), SlotUse(1, 1, 0, 4, 4), SlotUse(0, 2, 4, 7, 7)]
    assert [(call.rows, call.useful) for call in waves.calls] == [
        (2, 0),
        (2, 2),
        (2, 1),
        (2, 1),
        (1, 0),
        (1, 1),
        (1, 1),
    ]
    refilled = planned("continuous", [1, 3, 2], 2)
    assert refilled.slots == [SlotUse(0, 0, 0, 2, 2), SlotUse(0, 2, 2, 5, 5), SlotUse(1, 1, 0, 5, 5)]
    assert [call.prefill_tokens for call in refilled.calls] == [2 * PROMPT_TOKENS, 0, PROMPT_TOKENS, 0, 0]


def test_the_fit_finds_the_cost_that_made_the_times() -> None:
    """Times computed from a linear cost give that cost again."""
    runs = []
    for size in (2, 4, 8):
        run = planned("continuous", CALLS["output_tokens"], size)
        timed = [
            Call(c.prefill_tokens, c.rows, c.useful, 0.002 + 1e-5 * c.prefill_tokens)
            if c.prefill_tokens
            else Call(0, c.rows, c.useful, 0.003 + 3e-5 * c.rows)
            for c in run.calls
        ]
        runs.append(BenchRun("continuous", size, timed))
    found = fitted(call_times(runs))
    for name in ("overhead_s", "per_prefill_token_s", "decode_base_s", "per_decode_s"):
        assert getattr(found, name) == pytest.approx(getattr(COST, name), rel=1e-6), name


def test_a_fit_needs_both_kinds_of_call() -> None:
    """Decode calls alone do not determine the cost of a prompt."""
    with pytest.raises(InputError, match="with decodes and with prompt tokens"):
        fitted([CallTime(0, 1, 5, 0.001)])


def test_without_torch_one_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch the error is one line with the command that installs it."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"pip install '\.\[torch\]'") as caught:
        bench("continuous", [3], 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("policy", "lengths", "batch_size", "said"),
    [
        ("pad_to_mx", [3], 1, "did you mean 'pad_to_max'"),
        ("continuous", [3], 0, "batch_size = 0"),
        ("continuous", [3, 0], 1, "0 must be at least 1"),
    ],
)
def test_mistakes_are_named(policy: Any, lengths: list[int], batch_size: int, said: str) -> None:
    """A wrong policy, batch size or length is an error before torch is needed."""
    with pytest.raises(InputError, match=said):
        bench(policy, lengths, batch_size)
