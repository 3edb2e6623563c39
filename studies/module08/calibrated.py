"""From the bench to the simulator: a linear step cost fitted to measured calls, and both policies simulated with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import simqueue
from simqueue.calibration.linear import StepMean, fit_linear
from simqueue.module08.bench import PROMPT_TOKENS, BenchPolicy, BenchRun
from simqueue.steptime.linear import LinearStepTime

BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True)
class CallTime:
    """The mean time of calls of one shape.

    Attributes
    ----------
    prefill_tokens : int
        0 in decode calls.
    rows : int
        Requests in each call.
    calls : int
        Number of calls.
    mean_s : float
    """

    prefill_tokens: int
    rows: int
    calls: int
    mean_s: float


def call_times(runs: Iterable[BenchRun]) -> list[CallTime]:
    """Return the mean time of the calls of each shape, ordered by shape."""
    grouped: dict[tuple[int, int], list[float]] = {}
    for run in runs:
        for call in run.calls:
            grouped.setdefault((call.prefill_tokens, call.rows), []).append(call.seconds)
    return [CallTime(*shape, len(taken), sum(taken) / len(taken)) for shape, taken in sorted(grouped.items())]


def fitted(times: Sequence[CallTime]) -> LinearStepTime:
    """Return the linear cost closest to measured calls; see `simqueue.calibration.linear.fit_linear`."""
    return fit_linear([StepMean(0 if t.prefill_tokens else t.rows, t.prefill_tokens, t.mean_s, t.calls) for t in times])


def cost_text(cost: LinearStepTime) -> str:
    """Return the text of a linear cost."""
    return (
        f"{1e3 * cost.overhead_s:.3g} ms + {1e3 * cost.per_prefill_token_s:.3g} ms per prompt token; "
        f"with decodes + {1e3 * cost.decode_base_s:.3g} ms + {1e3 * cost.per_decode_s:.3g} ms per row"
    )


@dataclass(frozen=True, slots=True)
class Simulated:
    """Tokens/s and model calls of a simulated run of the bench."""

    tokens_per_s: float
    calls: int


def simulated(policy: BenchPolicy, out_lens: Sequence[int], batch_size: int, cost: LinearStepTime) -> Simulated:
    """Simulate the bench's requests: static waves, or continuous batching with separate prefills.

    A prefill of the bench generates no token, a prefill of the simulator generates the first one. So each simulated
    request has one output token more.
    """
    slots = {"max_num_seqs": batch_size}
    policies = {
        "pad_to_max": {"scheduler": "static", **slots},
        "continuous": {
            "scheduler": "continuous",
            "prefill": "separate",
            **slots,
            "max_num_batched_tokens": batch_size * PROMPT_TOKENS,
        },
    }
    requests = [{"arrival_s": 0, "prompt_tokens": PROMPT_TOKENS, "output_tokens": length + 1} for length in out_lens]
    longest_tokens = PROMPT_TOKENS + max(out_lens) + 1
    result = simqueue.run(
        {
            "name": "bench",
            "step_time": {
                "kind": "linear",
                "overhead_s": cost.overhead_s,
                "per_prefill_token_s": cost.per_prefill_token_s,
                "decode_base_s": cost.decode_base_s,
                "per_decode_s": cost.per_decode_s,
            },
            "kv_cache": {"block_size": BLOCK_TOKENS, "blocks": batch_size * -(-longest_tokens // BLOCK_TOKENS)},
            "workload": {"requests": requests},
            "policies": {policy: policies[policy]},
        }
    )
    recording = result.runs[0].recording
    return Simulated(sum(out_lens) / recording.end_s, int(recording.steps["repeat"].sum()))
