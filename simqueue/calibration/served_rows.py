"""Reads results of a server: means by concurrency, or a log of requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simqueue.calibration.case import ServedCase
from simqueue.calibration.closed_loop import ClosedLoop, compose
from simqueue.calibration.rows import Target
from simqueue.datafiles.csvtable import Row, read_table
from simqueue.errors import InputError
from simqueue.hardware import kv_pool_blocks

MEANS = ("concurrency", "isl", "osl", "tpot_ms", "ttft_ms", "tensor_parallel")
MEANS_NEEDED = ("concurrency", "isl", "osl", "tpot_ms")
LOG = ("arrival_s", "prompt_tokens", "output_tokens", "tpot_ms", "ttft_ms")
LOG_NEEDED = ("arrival_s", "prompt_tokens", "output_tokens", "tpot_ms")
BLOCK_SIZE = 16
BUDGET = 8192
REQUESTS_PER_CLIENT = 10
SEED = 0


@dataclass(frozen=True, slots=True)
class Server:
    """Scheduler and KV pool of the measured server.

    Attributes
    ----------
    scheduler : str
        ``chunked`` or ``continuous``.
    max_num_seqs, max_num_batched_tokens : int
        Most running requests, and token budget per step.
    memory_share : float
        Share of the GPU's memory for weights and KV.
    blocks : int or None
        Size of the KV pool; None: from the memory.
    shortest : float
        Lengths are uniform between this share of the nominal length and the nominal length; 1: all nominal.
    """

    scheduler: str = "chunked"
    max_num_seqs: int = 256
    max_num_batched_tokens: int = BUDGET
    memory_share: float = 0.9
    blocks: int | None = None
    shortest: float = 1.0


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request of a log; times are in seconds; `tpot_s` is None for outputs of one token."""

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    tpot_s: float | None


def read_means(file: Path, target: Target, server: Server) -> tuple[list[ServedCase], list[ServedCase], list[str]]:
    """Read means of closed-loop runs: ``concurrency, isl, osl, tpot_ms``, optionally ``ttft_ms, tensor_parallel``.

    Returns
    -------
    tpot, ttft : list of ServedCase
        One case per row for mean TPOT, and one for mean TTFT if the row has it.
    bad : list of str
        One line for each row that cannot be used, with file, line and reason.

    Raises
    ------
    InputError
        If the file cannot be read, has other columns, or a request does not fit the KV pool.
    """
    tpot: list[ServedCase] = []
    ttft: list[ServedCase] = []
    bad: list[str] = []
    for row in _rows(file, MEANS, MEANS_NEEDED):
        try:
            concurrency, isl, osl, tpot_ms = (row.number(name, above=0) for name in MEANS_NEEDED)
            ttft_ms = row.number("ttft_ms", above=0, empty=0)
            tensor_parallel = row.integer("tensor_parallel", empty=0)
            if osl < 2:
                raise row.error("an output of one token has no TPOT")
        except InputError as error:
            bad.append(str(error))
            continue
        tensor_parallel = tensor_parallel or target.tensor_parallel
        composition = compose(_loop(concurrency, isl, osl, tensor_parallel, target, server))
        parts = (row.where, target.model, target.gpu, tensor_parallel, composition.batches)
        tpot.append(ServedCase(*parts, composition.tpot_weights.tolist(), tpot_ms / 1e3))
        if ttft_ms > 0:
            weights, prompt = composition.ttft_weights.tolist(), composition.mean_prompt_tokens
            ttft.append(ServedCase(*parts, weights, ttft_ms / 1e3, prompt_tokens=prompt))
    return tpot, ttft, bad


def read_log(file: Path) -> tuple[list[LoggedRequest], list[str]]:
    """Read a log of single requests: ``arrival_s, prompt_tokens, output_tokens, tpot_ms``.

    Returns
    -------
    log : list of LoggedRequest
        The usable rows, sorted by arrival.
    bad : list of str
        One line for each row that cannot be used, with file, line and reason.
    """
    good: list[LoggedRequest] = []
    bad: list[str] = []
    for row in _rows(file, LOG, LOG_NEEDED):
        try:
            good.append(_logged(row))
        except InputError as error:
            bad.append(str(error))
    return sorted(good, key=lambda request: request.arrival_s), bad


def _logged(row: Row) -> LoggedRequest:
    arrival_s = row.number("arrival_s", least=0)
    prompts, outputs = (int(row.number(name, least=1)) for name in ("prompt_tokens", "output_tokens"))
    return LoggedRequest(arrival_s, prompts, outputs, row.number("tpot_ms", above=0) / 1e3 if outputs > 1 else None)


def _rows(file: Path, known: Sequence[str], needed: Sequence[str]) -> Iterator[Row]:
    table = read_table(file, file.name, pad=True)
    table.check_columns(needed, known)
    return table.rows()


def pool_blocks(target: Target, server: Server, tensor_parallel: int) -> int:
    """Return the KV pool of the measured server, in blocks of 16 tokens."""
    if server.blocks is not None:
        return server.blocks
    return kv_pool_blocks(target.gpu, target.model, tensor_parallel, server.memory_share, BLOCK_SIZE)


def drawn_lengths(nominal: float, shortest: float, n: int, generator: np.random.Generator) -> Sequence[int]:
    """Return `n` lengths, uniform between `shortest` times the nominal length and the nominal length."""
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
