"""The terms of one step, for people: what each moves and computes, how long it takes, what decides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a step's time. Bytes and FLOPs are those of one GPU; None where the term has none.

    Attributes
    ----------
    name : str
    seconds : float
    bytes_moved, flops : float or None
    counts : bool
        Whether the term is part of the step's time; the smaller side of a maximum is not.
    bound : str
        What limits it, in a word: memory, compute, link, latency, launches, host.
    """

    name: str
    seconds: float
    bytes_moved: float | None = None
    flops: float | None = None
    counts: bool = True
    bound: str = ""
