"""Which experts the measured layers ran: the two routings of the benchmark that measured them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

DRAWS: Final = 40
"""Draws of the power law that a load is the mean of; the one draw that was measured is not known."""

SEED: Final = 0
EXPONENT: Final = 1.2
"""Of the power law that the loads of experts are drawn from."""

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Load:
    """What the measured GPU ran in one layer.

    Attributes
    ----------
    experts : float
        Its experts that at least one token is routed to.
    pairs : float
        (token, expert) pairs that it computes.
    """

    experts: float
    pairs: float


@cache
def measured_load(routing: str, tokens: int, active: int, experts: int, ranks: int) -> Load:
    """Return the load of the measured GPU: the first of `ranks` if balanced, that with the most pairs if not."""
    if routing == "balanced":
        return _load(balanced(tokens, active, experts).reshape(ranks, -1)[0])
    drawn = []
    for counts in _draws(tokens, active, experts):
        by_rank = counts.reshape(ranks, -1)
        drawn.append(_load(by_rank[by_rank.sum(axis=1).argmax()]))
    return Load(float(np.mean([one.experts for one in drawn])), float(np.mean([one.pairs for one in drawn])))


@cache
def _draws(tokens: int, active: int, experts: int) -> list[Counts]:
    generator = np.random.default_rng(SEED)
    return [power_law(tokens, active, experts, generator) for _ in range(DRAWS)]


def balanced(tokens: int, active: int, experts: int) -> Counts:
    """Return the tokens of each expert if tokens go round: every expert has as many, up to one."""
    stride = -(-experts // active)
    first = np.arange(tokens) if tokens >= stride else np.arange(tokens) * stride / tokens
    used = (first[:, None] + stride * np.arange(active)) % experts
    return np.bincount(used.astype(np.int64).ravel(), minlength=experts)


def power_law(tokens: int, active: int, experts: int, generator: np.random.Generator) -> Counts:
    """Return the tokens of each expert if the loads are drawn from a power law, scaled, rounded and cut at `tokens`.

    What rounding and cutting leave over goes to the experts with the fewest tokens, or is taken from them.
    """
    pairs = tokens * active
    low, high = (1.0, 0.8 * tokens) if pairs > experts else (0.01, 2.0)
    power = 1 - EXPONENT
    drawn = (generator.random(experts) * (high**power - low**power) + low**power) ** (1 / power)
    counts: Counts = np.minimum(np.round(drawn / drawn.sum() * pairs).astype(np.int64), tokens)
    fewest = np.argsort(counts + generator.random(experts))  # ties in no particular order
    left, place = pairs - int(counts.sum()), 0
    while left:
        expert = fewest[place % experts]
        change = int(np.sign(left))
        if 0 <= counts[expert] + change <= tokens:
            counts[expert] += change
            left -= change
        place += 1
    return counts


def _load(counts: Counts) -> Load:
    return Load(float((counts > 0).sum()), float(counts.sum()))
