"""What a search for the capacity answers: a record per policy, tables, and a figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simqueue.decisions.conditions import Conditions
from simqueue.decisions.judgement import Judged
from simqueue.decisions.trials import Point
from simqueue.results.latencies import GOOD

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from simqueue.results.summary import Row

STEADY = "in a steady state"
FINITE = "over the scenario's own traffic, which is scaled"


@dataclass(frozen=True, slots=True)
class ModelRange:
    """The capacity with step times that are off by their published error.

    Attributes
    ----------
    share : float or None
        The published error, as a share of the step times; None: none is published.
    slow_rps, fast_rps : float or None
        With longer and with shorter steps; None if no rate keeps the conditions then.
    reason : str
        Where the preset is used, or why there is no error.
    """

    share: float | None
    slow_rps: float | None
    fast_rps: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The capacity of one policy.

    Attributes
    ----------
    policy : str
    capacity_rps, low_rps, high_rps : float or None
        The highest rate with its interval; None if there is none, or if it is not known.
    unit : str
        Of the rates.
    binding : str
        The condition that a higher rate would break, or the stable rate.
    why_not : str
        Empty, or why there is no capacity.
    stopped : str
        What ended the search: the precision, the budget, or that there is nothing to find.
    law_rps : float or None
        The capacity by the law, without any limit on latency.
    attained : mapping of str to float or None
        The values that conditions are about, at the capacity.
    output_throughput : float or None
        Tokens per second at the capacity.
    gpus : int
    usd_per_hour : float or None
        Of all GPUs.
    no_price : str
        Empty, or why there is no price.
    runs, requests, replications : int
        All runs; requests in each run that the answer is from, and how many of them there are at each rate.
    notes : tuple of str
        What has to be said of it.
    points : tuple of Point
        All rates that were simulated, ascending.
    row : dict or None
        The summary at the simulated rate next to the answer.
    model : ModelRange or None
        None if it was not asked for. The interval holds its range.
    """

    policy: str
    capacity_rps: float | None
    low_rps: float | None
    high_rps: float | None
    unit: str
    binding: str
    why_not: str
    stopped: str
    law_rps: float | None
    attained: Mapping[str, float | None]
    output_throughput: float | None
    gpus: int
    usd_per_hour: float | None
    no_price: str
    runs: int
    requests: int
    replications: int
    notes: tuple[str, ...]
    points: tuple[Point, ...]
    row: Row | None = None
    model: ModelRange | None = None

    @property
    def load(self) -> float | None:
        """The capacity over that of the law."""
        return None if self.capacity_rps is None or not self.law_rps else self.capacity_rps / self.law_rps

    @property
    def per_gpu_rps(self) -> float | None:
        """The capacity of each GPU."""
        return None if self.capacity_rps is None else self.capacity_rps / self.gpus

    @property
    def requests_per_usd(self) -> float | None:
        """Requests that are served for one dollar at the capacity; None: no price is known."""
        if self.capacity_rps is None or not self.usd_per_hour:
            return None
        return 3600 * self.capacity_rps / self.usd_per_hour

    def plain(self) -> dict[str, Any]:
        """Return the answer as plain values, None if undefined, without its points."""
        model = self.model
        widened = (
            {}
            if model is None
            else {
                "model_error_share": model.share,
                "capacity_slow_rps": model.slow_rps,
                "capacity_fast_rps": model.fast_rps,
                "model_error_note": model.reason,
            }
        )
        return {
            "policy": self.policy,
            "capacity_rps": self.capacity_rps,
            "capacity_low_rps": self.low_rps,
            "capacity_high_rps": self.high_rps,
            "unit": self.unit,
            "binding": self.binding or None,
            "why_not": self.why_not or None,
            **dict(self.attained),
            "load": self.load,
            "law_rps": self.law_rps,
            "output_throughput": self.output_throughput,
            "gpus": self.gpus,
            "per_gpu_rps": self.per_gpu_rps,
            "usd_per_hour": self.usd_per_hour,
            "requests_per_usd": self.requests_per_usd,
            "no_price": self.no_price or None,
            "runs": self.runs,
            "requests": self.requests,
            "replications": self.replications,
            "stopped": self.stopped,
            **widened,
            "note": "; ".join(self.notes) or None,
        }


@dataclass(frozen=True, slots=True)
class Answers:
    """The capacities of the policies of a scenario under limits on latency.

    Attributes
    ----------
    scenario : str
        Its name.
    steady : bool
        Whether the conditions are about a steady state; else about the scenario's own finite traffic.
    conditions : Conditions
    each : tuple of Answer
        In the order of the scenario.
    """

    scenario: str
    steady: bool
    conditions: Conditions
    each: tuple[Answer, ...]

    @property
    def of(self) -> str:
        """What the answers are about."""
        return STEADY if self.steady else FINITE

    @property
    def table(self) -> pd.DataFrame:
        """One row per policy; undefined values are missing."""
        return _frame([one.plain() for one in self.each])

    @property
    def points(self) -> pd.DataFrame:
        """One row per policy and simulated rate, with all that the conditions are about and its intervals."""
        return _frame([_point_row(point) for one in self.each for point in one.points])

    def plot(self) -> Figure:
        """Draw goodput, attainment and the values of the conditions over the rate, with the answers."""
        from simqueue.figures.slo_capacity import slo_capacity_figure  # noqa: PLC0415 - matplotlib loads slowly

        return slo_capacity_figure(self.each, self.scenario)

    def plain(self) -> dict[str, Any]:
        """Return everything as plain values, as ``simqueue capacity --slo --json`` prints it."""
        return {
            "scenario": self.scenario,
            "of": self.of,
            "conditions": [str(one) for one in self.conditions.all],
            "policies": [one.plain() for one in self.each],
            "points": [_point_row(point) for one in self.each for point in one.points],
        }


def _point_row(point: Point) -> dict[str, Any]:
    row: dict[str, Any] = {
        "policy": point.policy,
        "rate_rps": point.rate_rps,
        "requests": point.size.requests,
        "replications": point.size.replications,
        "overloaded": point.judgement.overloaded,
        "verdict": str(point.judgement.verdict),
    }
    for one in point.judgement.each:
        name = value_name(one)
        row |= {name: one.value, f"ci_low_{name}": one.low, f"ci_high_{name}": one.high}
    for column in ("request_throughput", "output_throughput", "request_goodput", GOOD):
        found = point.interval(column)
        if column not in row:
            ends = (None, None, None) if found is None else (found.value, found.low, found.high)
            row |= dict(zip((column, f"ci_low_{column}", f"ci_high_{column}"), ends, strict=True))
    return row


def value_name(one: Judged) -> str:
    """Return the name of a value in tables; those of classes are told apart."""
    condition = one.condition
    of_class = "" if condition.request_class == "all" else f" of {condition.request_class}"
    return condition.column + of_class


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    from pandas import DataFrame  # noqa: PLC0415 - pandas loads slowly, and the command prints another table

    return DataFrame(rows).convert_dtypes()
