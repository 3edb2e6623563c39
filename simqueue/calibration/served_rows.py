"""Reads served results: means by concurrency, or a log of single requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simqueue.calibration.case import ServedCase
from simqueue.calibration.closed_loop import ClosedLoop, compose
from simqueue.calibration.rows import BadRow, Target, number, read_rows
from simqueue.hardware import kv_pool_blocks

MEANS = ("concurrency", "isl", "osl", "tpot_ms", "ttft_ms", "tensor_parallel")
MEANS_NEEDED = ("concurrency", "isl", "osl", "tpot_ms")
LOG = ("arrival_s", "prompt_tokens", "output_tokens", "tpot_ms", "ttft_ms")
LOG_NEEDED = ("arrival_s", "prompt_tokens", "output_tokens", "tpot_ms")
BLOCK_SIZE = 16
REQUESTS_PER_CLIENT = 10
SEED = 0


@dataclass(frozen=True, slots=True)
class Server:
    """How the measured server schedules.

    Attributes
    ----------
    scheduler : str
        ``chunked`` or ``continuous``.
    max_num_seqs, max_num_batched_tokens : int
    memory_share : float
    blocks : int or None
        The KV pool; None: what the memory leaves.
    shortest : float
        Lengths are drawn evenly from this share of the nominal ones up to them; 1: all as long as stated.
    """

    scheduler: str = "chunked"
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    memory_share: float = 0.9
    blocks: int | None = None
    shortest: float = 1.0


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request of a log; times in seconds, `tpot_s` None for one-token answers."""

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    tpot_s: float | None


def read_means(file: Path, target: Target, server: Server) -> tuple[list[ServedCase], list[ServedCase], list[BadRow]]:
    """Read means of closed-loop runs: ``concurrency, isl, osl, tpot_ms`` and perhaps ``ttft_ms, tensor_parallel``.

    Returns
    -------
    TPOT cases, TTFT cases where given, bad rows
    """
    tpot: list[ServedCase] = []
    ttft: list[ServedCase] = []
    bad: list[BadRow] = []
    for where, row in read_rows(file, MEANS, MEANS_NEEDED):
        values = {column: number(row, column) for column in MEANS}
        wrong = [c for c in MEANS_NEEDED if not isfinite(values[c]) or values[c] <= 0]
        if wrong:
            bad.append(BadRow(where, f"{wrong[0]} = {row.get(wrong[0])!r} is not a positive number"))
            continue
        if values["osl"] < 2:
            bad.append(BadRow(where, "an answer of one token has no TPOT"))
            continue
        tensor_parallel = int(values["tensor_parallel"]) or target.tensor_parallel
        composition = compose(
            _loop(values["concurrency"], values["isl"], values["osl"], tensor_parallel, target, server)
        )
        parts = (where, target.model, target.gpu, tensor_parallel, composition.batches)
        tpot.append(ServedCase(*parts, composition.tpot_weights.tolist(), values["tpot_ms"] / 1e3))
        if values["ttft_ms"] > 0:
            ttft.append(ServedCase(*parts, composition.ttft_weights.tolist(), values["ttft_ms"] / 1e3))
    return tpot, ttft, bad


def read_log(file: Path) -> tuple[list[LoggedRequest], list[BadRow]]:
    """Read a log of single requests, in order of arrival: ``arrival_s, prompt_tokens, output_tokens, tpot_ms``."""
    good: list[LoggedRequest] = []
    bad: list[BadRow] = []
    for where, row in read_rows(file, LOG, LOG_NEEDED):
        values = {column: number(row, column, float("nan")) for column in LOG}
        wrong = [c for c in LOG_NEEDED[:3] if not isfinite(values[c]) or values[c] < (c != "arrival_s")]
        outputs = values["output_tokens"]
        if not wrong and outputs > 1 and not values["tpot_ms"] > 0:
            wrong = ["tpot_ms"]
        if wrong:
            bad.append(BadRow(where, f"{wrong[0]} = {row.get(wrong[0])!r} cannot be"))
            continue
        tpot_s = values["tpot_ms"] / 1e3 if outputs > 1 else None
        good.append(LoggedRequest(values["arrival_s"], int(values["prompt_tokens"]), int(outputs), tpot_s))
    return sorted(good, key=lambda request: request.arrival_s), bad


def pool_blocks(target: Target, server: Server, tensor_parallel: int) -> int:
    """Return the KV pool of the measured server, in blocks of 16 tokens."""
    if server.blocks is not None:
        return server.blocks
    return kv_pool_blocks(target.gpu, target.model, tensor_parallel, server.memory_share, BLOCK_SIZE)


def drawn_lengths(nominal: float, shortest: float, n: int, generator: np.random.Generator) -> Sequence[int]:
    """Return `n` lengths drawn evenly from `shortest` times the nominal one up to it."""
    if shortest >= 1:
        return [round(nominal)] * n
    lengths: NDArray[np.int64] = generator.integers(max(1, round(shortest * nominal)), round(nominal), n, endpoint=True)
    return [int(length) for length in lengths]


def _loop(
    concurrency: float, isl: float, osl: float, tensor_parallel: int, target: Target, server: Server
) -> ClosedLoop:
    clients = round(concurrency)
    n = REQUESTS_PER_CLIENT * clients
    generator = np.random.default_rng(SEED)
    return ClosedLoop(
        drawn_lengths(isl, server.shortest, n, generator),
        drawn_lengths(osl, server.shortest, n, generator),
        clients,
        blocks=pool_blocks(target, server, tensor_parallel),
        block_size=BLOCK_SIZE,
        max_num_batched_tokens=server.max_num_batched_tokens,
        scheduler=server.scheduler,
    )
