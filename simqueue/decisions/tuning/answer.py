"""The answer of a search: the best system, the next ones, and why the others fell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simqueue.decisions.judgement import Judged, Verdict
from simqueue.decisions.tuning.runs import Spent
from simqueue.statistics.intervals import Interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simqueue.outputs import Place
    from simqueue.scenario.resolved import ResolvedScenario


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of one system.

    Attributes
    ----------
    number : int
        Its place in the space, from 1.
    values : mapping of str to object
        Of the keys that vary.
    gpus : int or None
    usd_per_hour : float or None
        Null: unknown.
    state : str
        What became of it, such as "best" or "does not keep its limits".
    reason : str
        More about that; can be empty.
    replications : int
        Whole runs.
    metric : Interval or None
        What decides between systems of the same cost, or what was asked to be best.
    limits : tuple of Judged
        One per condition, with values over all replications; empty if nothing is known.
    margin : float or None
        The largest value over its limit: 1 is just kept.
    """

    number: int
    values: Mapping[str, Any]
    gpus: int | None
    usd_per_hour: float | None
    state: str
    reason: str = ""
    replications: int = 0
    metric: Interval | None = None
    limits: tuple[Judged, ...] = ()
    margin: float | None = None

    @property
    def label(self) -> str:
        """Its keys and values in one line."""
        return ", ".join(f"{name}={value}" for name, value in self.values.items())

    def plain(self) -> dict[str, Any]:
        """Return plain values."""
        metric = self.metric
        return {
            "number": self.number,
            "keys": dict(self.values),
            "gpus": self.gpus,
            "usd_per_hour": self.usd_per_hour,
            "state": self.state,
            "reason": self.reason or None,
            "replications": self.replications,
            "metric": None if metric is None else {"value": metric.value, "low": metric.low, "high": metric.high},
            "limits": [_plain(one) for one in self.limits],
            "margin": self.margin,
        }


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What a search finds with step times that are off.

    Attributes
    ----------
    said : str
        How they are off.
    best : str or None
        The best system; None: no system is known to keep the limits.
    told_apart : bool
        Whether the best system without errors surely is not the best here.
    stopped : str
        Empty, or why the search ended early.
    """

    said: str
    best: str | None
    told_apart: bool
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class AtErrors:
    """What the answer is if step times are off by their published error.

    Attributes
    ----------
    share : float or None
        The error of the best system, as a share of the step times; None: none is published.
    reason : str
        How the preset is used; or why there is no error.
    elsewhere : tuple of Elsewhere
        All step times off in one direction, in the other, and those of the best system against those of other presets.
    """

    share: float | None
    reason: str
    elsewhere: tuple[Elsewhere, ...] = ()

    def line(self, best: str) -> str:
        """Return in one line whether the answer holds."""
        if self.share is None:
            return f"no published error of the step times: {self.reason}"
        error = f"the published error of the step times ({100 * self.share:.3g} %)"
        others = [one for one in self.elsewhere if one.best != best or one.stopped]
        flips = [one for one in others if one.told_apart and not one.stopped]
        if flips:
            told = "; ".join(f"{one.best or 'no system'} if {one.said}" for one in flips)
            return f"the answer flips within {error}: {told}"
        if not others:
            return f"the answer holds within {error}"
        leads = [f"{one.best or 'no system'} leads" for one in others]
        told = "; ".join(f"{one.stopped or lead} if {one.said}" for one, lead in zip(others, leads, strict=True))
        return f"it is not shown whether the answer holds within {error}: {told}"


@dataclass(frozen=True)
class Tuning:
    """What a search found.

    Attributes
    ----------
    policy : str
        The policy whose keys vary.
    limits : str
        The conditions.
    goal : str
        What is best: the cost in USD per hour or in GPUs, or a metric.
    tie : str
        The metric that decides between systems of the same cost; with a metric as goal the same one.
    confidence : float
        Probability that the answer is right.
    zone : float
        Difference of the metric that does not matter, as a share.
    standings : tuple of Standing
        All systems of the space: the best one first, then those that were in the race to the end, then the others.
    has_best : bool
        Whether the first standing is the answer; if not, no system is known to keep the limits.
    stopped : str
        Empty, or why the search ended early.
    spent : Spent
    notes : tuple of str
        What a reader should know.
    shown : int
        How many of the first systems have values of all runs.
    scenarios : mapping of int to ResolvedScenario
        Those of the best systems, by their number.
    at_errors : AtErrors or None
        None: it was not asked for.
    """

    policy: str
    limits: str
    goal: str
    tie: str
    confidence: float
    zone: float
    standings: tuple[Standing, ...]
    has_best: bool
    stopped: str
    spent: Spent
    notes: tuple[str, ...]
    shown: int
    scenarios: Mapping[int, ResolvedScenario] = field(repr=False, default_factory=dict)
    at_errors: AtErrors | None = None

    @property
    def best(self) -> Standing | None:
        """The answer; None if no system is known to keep the limits."""
        return self.standings[0] if self.has_best else None

    @property
    def top(self) -> tuple[Standing, ...]:
        """The best systems, each with all its runs."""
        return self.standings[: self.shown]

    @property
    def unknown(self) -> tuple[Standing, ...]:
        """Systems that would be better than the answer if they kept the limits, which cannot be told."""
        return tuple(one for one in self.standings if one.state == "cannot be told")

    @property
    def not_told_apart(self) -> tuple[Standing, ...]:
        """Systems that may be as good as the answer."""
        return tuple(one for one in self.standings[1:] if one.state == "not told apart")

    @property
    def looked_worse(self) -> tuple[Standing, ...]:
        """Systems that were not run further because they looked worse than the answer, which is not for sure."""
        return tuple(one for one in self.standings if one.state == "looked worse")

    @property
    def failed(self) -> tuple[Standing, ...]:
        """Systems whose run failed."""
        return tuple(one for one in self.standings if one.state == "its run failed")

    @property
    def nearest(self) -> Standing | None:
        """Of the systems that do not keep the limits, the one that misses them least."""
        missed = [one for one in self.standings if one.margin is not None and one.state != "best"]
        return min(missed, key=lambda one: one.margin or 0.0, default=None)

    @property
    def fallen(self) -> dict[str, int]:
        """How many systems fell for which reason, the most frequent first."""
        reasons = Counter(one.reason or one.state for one in self.standings[int(self.has_best) :])
        return dict(reasons.most_common())

    @property
    def table(self) -> pd.DataFrame:
        """One row per system of the space."""
        from pandas import DataFrame  # noqa: PLC0415 - pandas loads slowly, and the command prints another table

        return DataFrame([_row(one) for one in self.standings])

    def plain(self) -> dict[str, Any]:
        """Return plain values, as ``simqueue tune --json`` prints them."""
        best, nearest, at_errors = self.best, self.nearest, self.at_errors
        return {
            "policy": self.policy,
            "limits": self.limits,
            "goal": self.goal,
            "tie": self.tie,
            "confidence": self.confidence,
            "zone": self.zone,
            "best": None if best is None else best.plain(),
            "not_told_apart": [one.number for one in self.not_told_apart],
            "looked_worse": [one.number for one in self.looked_worse],
            "cannot_be_told": [one.number for one in self.unknown],
            "nearest_miss": None if best is not None or nearest is None else nearest.plain(),
            "fallen": self.fallen,
            "model_error": None if at_errors is None or best is None else at_errors.line(best.label),
            "stopped": self.stopped or None,
            "runs": self.spent.runs,
            "short_runs": self.spent.short_runs,
            "requests": self.spent.requests,
            "steps": self.spent.steps,
            "notes": list(self.notes),
            "systems": [one.plain() for one in self.standings],
        }

    def save(self, directory: str | Path | Place) -> list[Path]:
        """Write the best systems as scenario files (``best-1.yaml``, ...), and a table of all systems, to a folder.

        Raises
        ------
        InputError
            If the folder has something else in it, or cannot be written.
        """
        from simqueue.decisions.tuning.files import save  # noqa: PLC0415 - a YAML writer, which few need

        return save(self, directory)

    def figure(self) -> Figure:
        """Return what systems cost and how well they keep the limits, with intervals; the answer has a star."""
        from simqueue.decisions.tuning.picture import figure_of  # noqa: PLC0415 - figures load slowly

        return figure_of(self)

    def plot(self) -> Axes:
        """Draw the figure and return its axes."""
        return self.figure().axes[0]


def _plain(one: Judged) -> dict[str, Any]:
    verdict = {Verdict.MET: True, Verdict.NOT_MET: False}.get(one.verdict)
    return {"condition": str(one.condition), "value": one.value, "low": one.low, "high": one.high, "met": verdict}


def _row(one: Standing) -> dict[str, Any]:
    metric = one.metric or Interval(float("nan"), None, None)
    row = {
        "number": one.number,
        **one.values,
        "gpus": one.gpus,
        "usd_per_hour": one.usd_per_hour,
        "state": one.state,
        "reason": one.reason,
        "replications": one.replications,
        "metric": metric.value,
        "ci_low_metric": metric.low,
        "ci_high_metric": metric.high,
        "margin": one.margin,
    }
    for judged in one.limits:
        name = judged.condition.column
        row |= {name: judged.value, f"ci_low_{name}": judged.low, f"ci_high_{name}": judged.high}
    return row


def ordered(found: Sequence[Standing]) -> list[Standing]:
    """Return standings with the best one first, then by what became of them."""
    return sorted(found, key=lambda one: (_ORDER.get(one.state, len(_ORDER)), -one.replications, one.number))


_ORDER = {
    state: place
    for place, state in enumerate(
        (
            "best",
            "not told apart",
            "looked worse",
            "not better than the best",
            "open",
            "cannot be told",
            "does not keep its limits",
        )
    )
}
