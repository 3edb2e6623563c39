"""From the bench to the simulator: a linear step cost from measured calls, and both policies simulated with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from simqueue.calibration.linear import StepMean, fit_linear
from simqueue.kvcache import PagedKVCache
from simqueue.module08.bench import PROMPT_TOKENS, BenchPolicy, BenchRun
from simqueue.request import Request
from simqueue.schedulers import Continuous, Policy, Static
from simqueue.schedulers.keys import ContinuousSettings, StaticSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.simulation import RunOptions, Simulation
from simqueue.steptime.linear import LinearStepTime

_BLOCK = 16


@dataclass(frozen=True, slots=True)
class CallTime:
    """Calls of one shape, and what they took.

    Attributes
    ----------
    prefill_tokens : int
        0 in decode calls.
    rows : int
        Requests in the call.
    calls : int
    mean_s : float
    """

    prefill_tokens: int
    rows: int
    calls: int
    mean_s: float


def call_times(runs: Iterable[BenchRun]) -> list[CallTime]:
    """Return the mean time of every shape of call, ordered by shape."""
    grouped: dict[tuple[int, int], list[float]] = {}
    for run in runs:
        for call in run.calls:
            grouped.setdefault((call.prefill_tokens, call.rows), []).append(call.seconds)
    return [CallTime(*shape, len(taken), sum(taken) / len(taken)) for shape, taken in sorted(grouped.items())]


def fitted(times: Sequence[CallTime]) -> LinearStepTime:
    """Return the linear cost that is closest to measured calls; see `simqueue.calibration.linear.fit_linear`."""
    return fit_linear([StepMean(0 if t.prefill_tokens else t.rows, t.prefill_tokens, t.mean_s, t.calls) for t in times])


def cost_text(cost: LinearStepTime) -> str:
    """Return a linear cost in words."""
    return (
        f"{1e3 * cost.overhead_s:.3g} ms + {1e3 * cost.per_prefill_token_s:.3g} ms per prompt token; "
        f"with decodes + {1e3 * cost.decode_base_s:.3g} ms + {1e3 * cost.per_decode_s:.3g} ms per row"
    )


@dataclass(frozen=True, slots=True)
class Simulated:
    """What the simulator says of a run of the bench: tokens a second and model calls."""

    tokens_per_s: float
    calls: int


def simulated(policy: BenchPolicy, out_lens: Sequence[int], batch_size: int, cost: LinearStepTime) -> Simulated:
    """Play the bench's requests through the simulator: static waves, or continuous with prefills of their own.

    The bench's prefill makes no token, the simulator's makes the first; so each request asks for one token more.
    """
    asked = [Request(str(i), 0.0, PROMPT_TOKENS, length + 1) for i, length in enumerate(out_lens)]
    recording = Simulation(asked, _policy(policy, out_lens, batch_size), cost, RunOptions()).run()
    return Simulated(sum(out_lens) / recording.end_s, int(recording.steps["repeat"].sum()))


def _policy(policy: BenchPolicy, out_lens: Sequence[int], batch_size: int) -> Policy:
    longest = PROMPT_TOKENS + max(out_lens) + 1
    kv: Any = PagedKVCache(batch_size * -(-longest // _BLOCK), _BLOCK)
    if policy == "pad_to_max":
        return Static(StaticSettings(max_num_seqs=batch_size), kv, RequestLimits())
    budget = max(batch_size * PROMPT_TOKENS, batch_size)
    settings = ContinuousSettings(max_num_seqs=batch_size, max_num_batched_tokens=budget, prefill="separate")
    return Continuous(settings, kv, RequestLimits())
