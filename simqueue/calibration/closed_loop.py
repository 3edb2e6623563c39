"""Served runs in a closed loop as sums of steps: which steps run does not depend on how long they take.

`concurrency` clients ask again the instant they are answered. Whatever a step takes, it ends, those who are done are
replaced, and the next step begins: the sequence of batches follows from lengths, policy and pool alone. So a run is
simulated once, with steps of one second, and any step-time model prices it afterwards. That makes fits exact and cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import InputError
from simqueue.kvcache import PagedKVCache
from simqueue.request import Request
from simqueue.schedulers import SCHEDULERS, Policy
from simqueue.schedulers.limits import RequestLimits
from simqueue.simulation import RunOptions, Simulation
from simqueue.steptime import Batch, StepTime


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """What is asked and who serves it.

    Attributes
    ----------
    prompt_tokens, output_tokens : sequence of int
        Of each request, in the order in which they are sent.
    concurrency : int
        Clients; each sends its next request when the one before is answered.
    blocks, block_size : int
        The KV pool.
    max_num_batched_tokens : int
        Token budget of a step.
    scheduler : str
        ``chunked``, or ``continuous``.
    separate : bool
        Whether prompts run in steps of their own (``continuous`` only).
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
    """Kinds of steps of a closed-loop run, and how often each counts in the means.

    Attributes
    ----------
    batches : list of Batch
        Runs of equal steps stand once, with the context of their middle.
    counts, tpot_weights, ttft_weights : arrays, one value a batch
        How many steps there were; mean TPOT and mean TTFT are the sums of weight times duration.
    """

    batches: list[Batch]
    counts: NDArray[np.float64]
    tpot_weights: NDArray[np.float64]
    ttft_weights: NDArray[np.float64]


def compose(loop: ClosedLoop) -> Composition:
    """Run the loop with steps of one second and return its steps.

    Seats are limited to the concurrency and all requests wait from the start, so that a new one is taken in where a
    client would have sent it. Its TTFT counts from that departure.

    Raises
    ------
    InputError
        A request needs more blocks than the pool has.
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
    )


def _policy(loop: ClosedLoop) -> Policy:
    keys: dict[str, Any] = {"max_num_seqs": loop.concurrency, "max_num_batched_tokens": loop.max_num_batched_tokens}
    if loop.scheduler == "continuous":
        keys["prefill"] = "separate" if loop.separate else "mixed"
    policy = SCHEDULERS[loop.scheduler]
    kv = PagedKVCache(loop.blocks, loop.block_size)
    return policy(policy.Settings.model_validate(keys), kv, RequestLimits())  # type: ignore[call-arg] # the contract's constructor


def _coverage(
    steps: int, begins: NDArray[np.int64], ends: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return, for each step, the summed weights of the intervals that contain it."""
    edges = np.zeros(steps + 1)
    np.add.at(edges, begins, weights)
    np.add.at(edges, ends, -weights)
    return np.cumsum(edges)[:-1]


class _Ticks(StepTime):
    """Steps of one second that remember what ran."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.counts: list[int] = []

    def seconds(self, batch: Batch) -> float:
        return self.ends(0.0, batch, 1)[0]

    def ends(self, start_s: float, batch: Batch, n: int) -> list[float]:
        self.batches.append(batch.later((n - 1) // 2) if n > 1 else batch)
        self.counts.append(n)
        return [start_s + 1 + i for i in range(n)]
