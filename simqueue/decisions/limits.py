"""Limits on changes between two results: ``p99_ttft_ms=+5%``, ``request_throughput=-2%``, ``preemptions=+10``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from simqueue.errors import InputError, show
from simqueue.experiment.metric_names import better
from simqueue.names import unknown

_LIMIT: Final = re.compile(r"\s*([^\s=]+)\s*=\s*(\+-|[+-]?)\s*(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)\s*(%?)\s*")
_FORM: Final = "write METRIC=+5%, METRIC=-5%, METRIC=+-5%, or a number in the unit of the metric, such as METRIC=+20"


@dataclass(frozen=True, slots=True)
class Limit:
    """How far a metric may change.

    Attributes
    ----------
    metric : str
        Column of the summary.
    direction : {"+", "-", "+-"}
        Whether the limit is on higher values, on lower ones, or on both.
    amount : float
        A share of the baseline if `relative`, else in the unit of the metric; >= 0.
    relative : bool
    """

    metric: str
    direction: Literal["+", "-", "+-"]
    amount: float
    relative: bool

    def __str__(self) -> str:
        amount = f"{100 * self.amount:g}%" if self.relative else f"{self.amount:g}"
        return f"{self.metric}={self.direction}{amount}"


def parse_limits(texts: Sequence[str], known: Sequence[str]) -> tuple[Limit, ...]:
    """Return the limits that texts say.

    Without a sign, the limit is on changes for the worse.

    Parameters
    ----------
    texts : sequence of str
    known : sequence of str
        The metrics that can be limited.

    Raises
    ------
    InputError
        For another form, an unknown metric, a metric with two limits in one direction, or one without a sign of which
        neither direction is worse.
    """
    if isinstance(texts, str):
        raise InputError(f"limits = {show(texts)}: must be a list of texts, such as ['p99_ttft_ms=+5%']")
    limits = tuple(_parsed(text, known) for text in texts)
    met: dict[tuple[str, str], Limit] = {}
    for limit in limits:
        for sign in limit.direction:
            earlier = met.setdefault((limit.metric, sign), limit)
            if earlier is not limit:
                raise InputError(f"--limit {limit}: there is another limit in this direction, {earlier}")
    return limits


def _parsed(text: str, known: Sequence[str]) -> Limit:
    found = _LIMIT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InputError(f"--limit {text}: {_FORM}")
    metric, sign, number, percent = found.groups()
    if metric not in known:
        raise InputError(f"--limit {text}: {unknown('metric', metric, known)}")
    amount = float(number) / (100 if percent else 1)
    if sign == "+-":
        return Limit(metric, "+-", amount, bool(percent))
    worse: dict[str, Literal["+", "-"]] = {"lower": "+", "higher": "-", "+": "+", "-": "-"}
    direction = worse.get(sign or better(metric))
    if direction is None:
        raise InputError(f"--limit {text}: neither direction of {metric} is worse; give it a sign: + or - or +-")
    return Limit(metric, direction, amount, bool(percent))
