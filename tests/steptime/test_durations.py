"""Many consecutive steps cost exactly what each of them costs alone; more work never costs less."""

from bisect import bisect_left
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.hardware import ModelSettings, load_gpu, load_model
from simqueue.steptime import Batch, ConstantSettings, LinearSettings, RooflineSettings, StepTime
from simqueue.steptime.build import build
from simqueue.steptime.roofline import RooflineStepTime
from simqueue.steptime.scaled import scaled
from simqueue.steptime.work import Work

from ..helpers.profiles import examples

H100 = load_gpu("h100-sxm", Path())
# Weights and KV that are no whole numbers of bytes a GPU: every operation rounds.
ODD = load_model(ModelSettings(parameters=7_000_000_001, layers=31, heads=21, kv_heads=7, head_dim=96))
MODELS: list[StepTime] = [
    build(ConstantSettings(seconds=0.01)),
    build(LinearSettings(overhead_s=2e-4, per_prefill_token_s=2e-5, decode_base_s=4e-4, per_decode_s=3e-5)),
    build(LinearSettings(overhead_s=0.02, per_decode_s=1e-3, per_context_token_s=1.7e-7)),
    build(RooflineSettings(), load_model("llama-3.1-8b", Path()), H100, 1),
    build(RooflineSettings(mfu=0.01), load_model("qwen3-8b", Path()), H100, 2),
    build(RooflineSettings(bandwidth_share=0.37), load_model("llama-3.1-70b", Path()), H100, 16),
    build(RooflineSettings(bandwidth_share=0.9, mfu=0.03), ODD, H100, 7),
    RooflineStepTime(Work(1.1e10 / 3, 1.4e10 / 3, 1e9 / 3, 1e5 / 3, 5e5 / 3), 2.9e12 / 3, 1e18, 1e18),  # memory decides
]
CALIBRATED: list[StepTime] = [
    build(
        RooflineSettings(preset=preset, expert_parallel=whole),
        load_model(model, Path()),
        load_gpu(gpu, Path()),
        tensor_parallel,
    )
    for preset, gpu, model, tensor_parallel, whole in [
        ("vllm-h100", "h100-sxm", "llama-3.1-70b", 4, False),
        ("vllm-h100-kernels", "h100-sxm", "qwen3-30b-a3b", 2, True),
        ("vllm-rtx-4090", "rtx-4090", "llama-3.1-8b", 1, False),
        ("vllm-2023-a100", "a100-80gb", "llama-2-70b", 8, False),
        ("vllm-h200-gpt-oss", "h200-sxm", "gpt-oss-20b", 1, False),
        ("vllm-h200", "h200-sxm", "deepseek-v3", 8, False),
    ]
]
FACTORS: list[StepTime] = [
    scaled(model, factor) for model, factor in ((MODELS[2], 1.1), (MODELS[5], 0.7), (CALIBRATED[1], 1.3))
]

PIECES = st.lists(st.tuples(st.integers(0, 100_000), st.integers(1, 8192)), max_size=4).map(tuple)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Any batch: decodes with drafts, contexts up to the largest clusters, prompt chunks."""
    decode_seqs = draw(st.integers(0, 5000))
    drafts = draw(st.integers(1, 5))
    context = draw(st.integers(decode_seqs, 2**40)) if decode_seqs else 0
    prefill = draw(PIECES)
    rows = decode_seqs + draw(st.integers(0, len(prefill)))
    return Batch(decode_seqs, decode_seqs * drafts, context, prefill, rows)


@pytest.mark.parametrize("model", MODELS + CALIBRATED + FACTORS)
@examples(200)
@given(batch=batches(), n=st.just(1) | st.integers(0, 64) | st.integers(65, 300), start_s=st.floats(0, 1e6))
def test_durations_are_bit_identical_to_single_steps(model: StepTime, batch: Batch, n: int, start_s: float) -> None:
    """The i-th of n consecutive steps takes, bit for bit, what that step takes alone, and ends sum up in order."""
    single = [model.seconds(batch.later(i)) for i in range(n)]
    durations = model.durations(batch, n)
    assert [type(value) for value in durations] == [float] * n
    assert list(durations) == single
    now_s, ends = start_s, []
    for duration_s in single:
        now_s += duration_s
        ends.append(now_s)
    if n:
        assert model.ends(start_s, batch, n) == ends


@pytest.mark.parametrize("model", MODELS)
@given(batch=batches())
def test_more_work_never_takes_less_time(model: StepTime, batch: Batch) -> None:
    """One more decode, one more token of context, one more prompt chunk or a larger chunk never shortens a step."""
    larger = [
        batch._replace(
            decode_seqs=batch.decode_seqs + 1,
            decode_tokens=batch.decode_tokens + 1,
            context_tokens=batch.context_tokens + 1,
            sampled_rows=batch.sampled_rows + 1,
        ),
        batch._replace(context_tokens=batch.context_tokens + 1),
        batch._replace(prefill=(*batch.prefill, (7, 1))),
        *(
            batch._replace(prefill=(*batch.prefill[:i], (past, new + 1), *batch.prefill[i + 1 :]))
            for i, (past, new) in enumerate(batch.prefill)
        ),
    ]
    seconds = model.seconds(batch)
    assert all(model.seconds(other) >= seconds for other in larger)
    assert 0 < seconds < float("inf")


@pytest.mark.parametrize("model", CALIBRATED)
@given(decode_seqs=st.integers(0, 500), context=st.integers(1, 100_000), prefill=PIECES, drafts=st.integers(1, 3))
def test_more_work_of_the_same_kind_never_takes_less_time(
    model: StepTime, decode_seqs: int, context: int, prefill: tuple[tuple[int, int], ...], drafts: int
) -> None:
    """Calibrated steps grow with decodes of the same mean context, with context, with prompts and with chunks."""

    def step(seqs: int, tokens: int, pieces: tuple[tuple[int, int], ...]) -> float:
        return model.seconds(Batch(seqs, seqs * drafts, tokens, pieces, seqs + len(pieces)))

    tokens = decode_seqs * context
    seconds = step(decode_seqs, tokens, prefill)
    assert step(decode_seqs + 1, tokens + context, prefill) >= seconds * (1 - 1e-12)
    assert step(decode_seqs, tokens + decode_seqs, prefill) >= seconds * (1 - 1e-12)
    assert step(decode_seqs, tokens, (*prefill, (7, 1))) >= seconds * (1 - 1e-12)
    for i, (past, new) in enumerate(prefill):
        assert step(decode_seqs, tokens, (*prefill[:i], (past, new + 1), *prefill[i + 1 :])) >= seconds * (1 - 1e-12)
    assert 0 < seconds < float("inf")


@pytest.mark.parametrize("model", MODELS[3:-1])
@pytest.mark.parametrize("n", [2, 30, 200])
def test_steps_in_a_row_cross_from_compute_to_memory(model: RooflineStepTime, n: int) -> None:
    """Steps in a row that start bound by compute and end bound by memory take what each takes alone."""
    seqs = 4000
    crossing = bisect_left(range(10**8), 1, key=lambda context: _memory_bound(model, seqs, context))
    first = Batch(seqs, seqs, seqs * (crossing - n // 2), (), seqs)
    assert [model.bound(first), model.bound(first.later(n - 1))] == ["compute", "memory"]
    assert model.durations(first, n) == [model.seconds(first.later(i)) for i in range(n)]


def _memory_bound(model: RooflineStepTime, seqs: int, context: int) -> bool:
    return model.bound(Batch(seqs, seqs, seqs * context, (), seqs)) == "memory"
