"""A closed loop as a sum of steps equals the simulated closed loop, for any step time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simqueue.calibration.closed_loop import ClosedLoop, compose, make_policy
from simqueue.errors import InputError
from simqueue.hardware import load_gpu, load_model
from simqueue.kvcache import PagedKVCache
from simqueue.request import Request
from simqueue.simulation import RunOptions, Simulation
from simqueue.steptime import LinearSettings, RooflineSettings, StepTime
from simqueue.steptime.build import build

LENGTHS = np.random.default_rng(3).integers(20, 60, (2, 60)).tolist()
STEP_TIMES = [
    build(LinearSettings(overhead_s=0.01, per_decode_s=1e-3, per_prefill_token_s=1e-4)),
    build(LinearSettings(overhead_s=0.01, per_context_token_s=1e-5)),
    build(RooflineSettings(preset="vllm-h100"), load_model("llama-3.1-8b", Path()), load_gpu("h100-sxm", Path()), 1),
]


def loop(**keys: object) -> ClosedLoop:
    """Return a loop of six clients with sixty requests of 20 to 60 tokens."""
    return ClosedLoop(*LENGTHS, **{"concurrency": 6, "blocks": 1000, "max_num_batched_tokens": 64, **keys})  # type: ignore[arg-type]


def simulated(closed: ClosedLoop, step_time: StepTime) -> tuple[float, float]:
    """Return mean TPOT and TTFT of the same loop simulated with these step times; all requests wait from the start."""
    requests = [Request(f"r{i}", 0.0, p, o) for i, (p, o) in enumerate(zip(*LENGTHS, strict=True))]
    keys: dict[str, Any] = {"max_num_seqs": closed.concurrency, "max_num_batched_tokens": closed.max_num_batched_tokens}
    if closed.separate:
        keys["prefill"] = "separate"
    policy = make_policy(closed.scheduler, keys, PagedKVCache(closed.blocks, 16))
    columns = Simulation(requests, policy, step_time, RunOptions()).run().requests
    sent = np.concatenate([np.zeros(closed.concurrency), np.sort(columns["finish_s"])[: -closed.concurrency]])
    outputs = columns["output_tokens"]
    tpot = (columns["last_token_s"] - columns["first_token_s"]) / (outputs - 1)
    return float(tpot.mean()), float((columns["first_token_s"] - sent).mean())


@pytest.mark.parametrize("step_time", STEP_TIMES)
@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"concurrency": 1},
        {"scheduler": "continuous"},
        {"scheduler": "continuous", "separate": True},
        {"blocks": 16},
    ],
)
def test_weighted_steps_are_the_means(step_time: StepTime, keys: dict[str, object]) -> None:
    """Mean TPOT and TTFT are the weighted sums of step times, for any policy, a small pool, and any step-time model."""
    closed = loop(**keys)
    steps = compose(closed)
    seconds = np.array([step_time.seconds(batch) for batch in steps.batches])
    tpot, ttft = simulated(closed, step_time)
    assert steps.tpot_weights @ seconds == pytest.approx(tpot, rel=2e-3)  # runs of steps are priced at their middle
    assert steps.ttft_weights @ seconds == pytest.approx(ttft, rel=2e-3)


def test_every_token_is_counted() -> None:
    """Decodes of all steps are the tokens after the first of all requests, prompt tokens are all prompt tokens."""
    steps = compose(loop())
    decodes = sum(count * batch.decode_seqs for count, batch in zip(steps.counts, steps.batches, strict=True))
    assert decodes == sum(LENGTHS[1]) - len(LENGTHS[1])
    assert sum(batch.prefill_tokens for batch in steps.batches) == sum(LENGTHS[0])


def test_a_request_that_cannot_fit_is_named() -> None:
    """A pool that is too small for one request is an input error with the numbers."""
    with pytest.raises(InputError, match=r"closed loop of 6: prompt \d+ \+ output \d+ needs \d blocks, the pool has 3"):
        compose(loop(blocks=3))
