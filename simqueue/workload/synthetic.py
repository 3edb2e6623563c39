"""Requests with random arrivals and lengths that are independent of each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.errors import inside
from simqueue.request import Request
from simqueue.traffic import RequestStream
from simqueue.workload.arrivals.settings import ArrivalProcessSettings
from simqueue.workload.build import build_arrivals
from simqueue.workload.limits import FIRST_GENERATED_STREAM
from simqueue.workload.request_lengths import Lengths
from simqueue.workload.settings import WorkloadSettings
from simqueue.workload.streams import Draws

_AT_ONCE = 4096

Segment = tuple[int, int, int]
"""A piece of a prompt as `Request.prompt` has it: stream, start, length."""


def synthetic_requests(
    arrivals: ArrivalProcessSettings, settings: WorkloadSettings, draws: Draws, base_dir: Path, *, kept: bool
) -> RequestStream:
    """Return requests with random arrivals and lengths; their ids count them from 0.

    With `kept` false, requests without a system prompt or a correlation of their lengths are made while they are
    iterated over.

    Raises
    ------
    InputError
        If a file is wrong, or the arrival process ends too early.
    """
    with inside("arrivals"):
        arrival_s = build_arrivals(arrivals, base_dir).times(
            draws.rng("arrivals"), num_requests=settings.num_requests, until_s=settings.arrivals_for_s
        )
    n = len(arrival_s)
    lengths = Lengths.of(settings, base_dir)
    prompts, outputs = lengths.sample(draws.rng("prompt_tokens"), draws.rng("output_tokens"), n)
    drawn = _DrawnRequests(arrival_s, prompts, outputs)
    if not kept and settings.system_prompt is None and not settings.prompt_output_correlation:
        return drawn
    if settings.system_prompt is None:
        return list(drawn)
    pieces = system_prompts(settings, draws, n)
    return [
        _with_system_prompt(request, piece, FIRST_GENERATED_STREAM + i)
        for i, (request, piece) in enumerate(zip(drawn, pieces, strict=True))
    ]


class _DrawnRequests:
    """Requests that are made from their columns while they are iterated over."""

    def __init__(self, *columns: NDArray[Any]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def __iter__(self) -> Iterator[Request]:
        for first in range(0, len(self), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            rows = zip(*(column[part].tolist() for column in self._columns), strict=True)
            for index, (at_s, prompt, output) in enumerate(rows, first):
                yield Request(str(index), at_s, prompt, output)


def _with_system_prompt(request: Request, piece: Segment | None, own_stream: int) -> Request:
    """Return a request with a shared piece of tokens before its own."""
    if piece is None:
        return request
    own = (own_stream, 0, request.prompt_tokens)
    return replace(request, prompt_tokens=piece[2] + request.prompt_tokens, prompt=(piece, own))


def system_prompts(settings: WorkloadSettings, draws: Draws, n: int) -> list[Segment | None]:
    """Return the system prompt of each of `n` requests or sessions; None without a system prompt."""
    system = settings.system_prompt
    if system is None:
        return [None] * n
    variants = np.floor(draws.rng("system_prompt").random(n) * system.variants).astype(np.int64)
    return [(FIRST_GENERATED_STREAM - 1 - variant, 0, system.tokens) for variant in variants.tolist()]
