"""The terms of one step, for output: bytes, FLOPs, duration, and the resource that limits each term."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """One term of the duration of a step. Bytes and FLOPs are per GPU; None: the term has none.

    Attributes
    ----------
    name : str
    seconds : float
    bytes_moved, flops : float or None
    counts : bool
        Whether the term is part of the duration; the smaller operand of a maximum is not.
    bound : str
        The limiting resource: memory, compute, link, latency or host.
    """

    name: str
    seconds: float
    bytes_moved: float | None = None
    flops: float | None = None
    counts: bool = True
    bound: str = ""
