"""How reading and computing of one group of kernels overlap."""

from __future__ import annotations


def overlapped(read_s: float, compute_s: float, exponent: float | None) -> float:
    """Return the time of both: the longer one, and what does not overlap with it; None: all of it overlaps."""
    longer, shorter = (read_s, compute_s) if read_s >= compute_s else (compute_s, read_s)
    if exponent is None or not shorter:
        return longer
    return float(longer * (1 + (shorter / longer) ** exponent) ** (1 / exponent))
