"""Closed-loop runs as weighted sums of steps.

Each of `concurrency` clients sends its next request when the previous one has finished. At the end of a step, finished
requests are replaced and the next step starts, however long the step took. So the sequence of batches depends on
lengths, policy and pool only. A run is simulated once, with steps of one second; any step-time model then predicts its
means from the same steps. This makes fits exact and cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.kvcache import KVCache, PagedKVCache
from simqueue.request import Request
from simqueue.schedulers import SCHEDULERS, Policy
from simqueue.schedulers.limits import RequestLimits
from simqueue.settings import Settings
from simqueue.simulation import RunOptions, Simulation
from simqueue.steptime import Batch, StepTime


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """A closed loop: requests, clients and server.

    Attributes
    ----------
    prompt_tokens, output_tokens : sequence of int
        Lengths of each request, in the order in which they are sent.
    concurrency : int
        Number of clients.
    blocks, block_size : int
        Size of the KV pool in blocks, and tokens per block.
    max_num_batched_tokens : int
        Token budget per step.
    scheduler : str
        ``chunked`` or ``continuous``.
    separate : bool
        Whether steps have either prompts or decodes (``continuous`` only).
    """

    prompt_tokens: Sequence[int]
    output_tokens: Sequence[int]
    concurrency: int
    blocks: int
    block_size: int = 16
    max_num_batched_tokens: int = 8192
    scheduler: str = "chunked"
    separate: bool = False


@dataclass(frozen=True, slots=True)
class Composition:
    """Kinds of steps of a closed-loop run, with their weights in the means.

    Attributes
    ----------
    batches : list of Batch
        Repeated equal steps occur once, with the context in the middle of the repeats.
    counts, tpot_weights, ttft_weights : arrays, one value per batch
        Number of steps, and weights: mean TPOT and mean TTFT are the sums of weight times duration.
    mean_prompt_tokens : float
    """

    batches: list[Batch]
    counts: NDArray[np.float64]
    tpot_weights: NDArray[np.float64]
    ttft_weights: NDArray[np.float64]
    mean_prompt_tokens: float


def compose(loop: ClosedLoop) -> Composition:
    """Simulate the loop with steps of one second and return its steps.

    All requests wait from the start and at most `concurrency` run, so a request is admitted when a client would have
    sent it. Its TTFT counts from the end of the previous request.

    Raises
    ------
    InputError
        If a request needs more blocks than the pool has.
    """
    ticks = _Ticks()
    requests = [
        Request(f"r{i}", 0.0, prompt, output)
        for i, (prompt, output) in enumerate(zip(loop.prompt_tokens, loop.output_tokens, strict=True))
    ]
    recording = Simulation(requests, _policy(loop), ticks, RunOptions()).run()
    columns = recording.requests
    if any(columns["status"] != "finished"):
        reason = next(reason for reason in columns["reject_reason"] if reason)
        raise InputError(f"closed loop of {loop.concurrency}: {reason}")
    first = columns["first_token_s"].round().astype(int)
    last = columns["finish_s"].round().astype(int)
    sent = np.zeros(len(first), dtype=int)
    sent[loop.concurrency :] = np.sort(last)[: max(0, len(first) - loop.concurrency)]
    outputs = columns["output_tokens"]
    several = outputs > 1
    steps = sum(ticks.counts)
    tpot = _coverage(steps, first[several], last[several], 1 / (outputs[several] - 1) / max(1, several.sum()))
    ttft = _coverage(steps, sent, first, np.full(len(first), 1 / len(first)))
    starts = np.concatenate([[0], np.cumsum(ticks.counts)[:-1]])
    return Composition(
        ticks.batches,
        np.array(ticks.counts, dtype=float),
        np.add.reduceat(tpot, starts),
        np.add.reduceat(ttft, starts),
        float(np.mean(loop.prompt_tokens)),
    )


def make_policy(scheduler: str, keys: Mapping[str, Any], kv: KVCache) -> Policy:
    """Return a new policy of this scheduler with these keys; it rejects no request."""
    policy_class = SCHEDULERS[scheduler]
    make = cast("Callable[[Settings, KVCache, RequestLimits], Policy]", policy_class)
    return make(policy_class.Settings.model_validate(keys), kv, RequestLimits())


def _policy(loop: ClosedLoop) -> Policy:
    keys: dict[str, Any] = {"max_num_seqs": loop.concurrency, "max_num_batched_tokens": loop.max_num_batched_tokens}
    if loop.scheduler == "continuous":
        keys["prefill"] = "separate" if loop.separate else "mixed"
    return make_policy(loop.scheduler, keys, PagedKVCache(loop.blocks, loop.block_size))


def _coverage(
    steps: int, begins: NDArray[np.int64], ends: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return, for each step, the summed weights of the intervals that contain it."""
    edges = np.zeros(steps + 1)
    np.add.at(edges, begins, weights)
    np.add.at(edges, ends, -weights)
    return np.cumsum(edges)[:-1]


class _Ticks(StepTime):
    """Steps of one second; records the batches."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.counts: list[int] = []

    def seconds(self, batch: Batch) -> float:
        return self.ends(0.0, batch, 1)[0]

    def ends(self, start_s: float, batch: Batch, n: int) -> list[float]:
        self.batches.append(batch.later((n - 1) // 2) if n > 1 else batch)
        self.counts.append(n)
        return [start_s + 1 + i for i in range(n)]
