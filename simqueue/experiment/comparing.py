"""Comparison of policies on common random numbers: paired differences over replications."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simqueue.experiment.metric_names import better, check_names
from simqueue.results.replicated import is_percentile, missing_values
from simqueue.results.result import Result
from simqueue.results.steadiness import STEADY, unsteady
from simqueue.statistics.comparison import Comparison, Pairs, all_paired
from simqueue.statistics.intervals import Interval

DEFAULT_METRICS = ("mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "mean_e2el_ms", "request_throughput")
_UNDEFINED = "-"
_ROUNDING = 1e-12
"""Means over the same requests differ by this share or less if only the order of additions differs."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One policy against the baseline in one metric.

    Attributes
    ----------
    metric, policy, baseline : str
    found : Comparison or None
        None if there is nothing to compare.
    verdict : str or None
        better, worse (higher, lower, if neither is better), no difference shown, the same, the same difference each
        time, or why there is no comparison; None if each policy ran only once.
    """

    metric: str
    policy: str
    baseline: str
    found: Comparison | None
    verdict: str | None

    def difference(self) -> str:
        """Return the difference with its interval."""
        if self.found is None:
            return _UNDEFINED
        mean = self.found.difference.value
        return f"{'+' if mean > 0 else ''}{_plain(mean, 4)}" + _around(self.found.difference)

    def ratio(self) -> str:
        """Return the ratio of means with the ends of its interval."""
        found = None if self.found is None else self.found.ratio
        return _UNDEFINED if found is None else " ".join(filter(None, (_plain(found.value, 4), _between(found))))

    def simultaneous_difference(self) -> str:
        """Return the ends of the interval of the difference that holds together with those of the other rows."""
        return (self.found and _between(self.found.simultaneous_difference)) or _UNDEFINED

    def simultaneous_ratio(self) -> str:
        """Return the ends of the interval of the ratio that holds together with those of the other rows."""
        found = None if self.found is None else self.found.simultaneous_ratio
        return (found and _between(found)) or _UNDEFINED

    def variance_factor(self) -> str:
        """Return how many times less variance the shared traffic gave."""
        factor = None if self.found is None else self.found.variance_factor
        return _UNDEFINED if factor is None else _plain(factor, 3)

    def p(self) -> str:
        """Return the adjusted p-value."""
        p = None if self.found is None else self.found.adjusted_p
        return _UNDEFINED if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"

    def plain(self) -> dict[str, Any]:
        """Return plain values, None if undefined."""
        found = self.found
        return {
            "metric": self.metric,
            "policy": self.policy,
            "baseline": self.baseline,
            **_ends("difference", *((found.difference, found.simultaneous_difference) if found else (None, None))),
            **_ends("ratio", *((found.ratio, found.simultaneous_ratio) if found else (None, None))),
            "variance_factor": found.variance_factor if found else None,
            "p_value": found.p_value if found else None,
            "adjusted_p": found.adjusted_p if found else None,
            "verdict": self.verdict,
        }


def about_percentiles(metrics: Sequence[str]) -> list[str]:
    """Return a line that says which percentiles are compared, if any of the metrics is one."""
    text = "percentiles: means of the runs' own; the table of `run` pools all requests"
    return [text] if any(map(is_percentile, metrics)) else []


def compared(
    result: Result,
    baseline: str | None,
    metrics: Sequence[str],
    base_result: Result | None = None,
    *,
    confidence: float | None = None,
) -> list[Compared]:
    """Compare every other policy of a result with a baseline.

    Parameters
    ----------
    result : Result
        Of two policies or more and, for anything but plain differences, two replications or more.
    baseline : str or None
        None: the first policy.
    metrics : sequence of str
        Columns of the summary.
    base_result : Result, optional
        The result that the values of the baseline are taken from, with the same policies, replications and requests;
        by default the same one.
    confidence : float, optional
        Nominal coverage; by default that of the result.

    Raises
    ------
    InputError
        For an unknown policy.
    """
    check_names(result.policies, baseline, (), ())
    source, sure = base_result or result, confidence or result.confidence
    base = result.policies[0] if baseline is None else baseline
    keys = [(metric, policy) for metric in metrics for policy in result.policies if policy != base]
    pairs: dict[tuple[str, str], Pairs] = {}
    missing = {}
    for key in keys:
        metric, policy = key
        values, base_values = _known(result.values(policy, metric)), _known(source.values(base, metric))
        if values is None or base_values is None:
            missing[key] = why_no_values(*((result, [policy]) if values is None else (source, [base])), metric)
        else:
            pairs[key] = (without_noise(values, base_values), base_values)
    corrected = all_paired(pairs, sure)
    verdicts = {
        key: found.verdict(better(key[0]), confidence=sure) if result.replicated else None
        for key, found in corrected.items()
    }
    return [
        Compared(metric, policy, base, corrected.get((metric, policy)), (verdicts | missing)[metric, policy])
        for metric, policy in keys
    ]


def _known(values: list[float | None]) -> list[float] | None:
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def without_noise(values: Sequence[float], base_values: Sequence[float]) -> list[float]:
    """Return values with those that differ from the baseline by rounding only replaced by the baseline's."""
    return [
        base if math.isclose(value, base, rel_tol=_ROUNDING) else value
        for value, base in zip(values, base_values, strict=True)
    ]


def why_no_values(result: Result, policies: Sequence[str], metric: str) -> str:
    """Return why a metric has no value in some replication of one of these policies."""
    rows = [row for policy in policies for row in result.rows_of(policy)]
    hiding = [row["policy"] for row in result.summary_rows if unsteady(row) and row["window"] == STEADY]
    overloaded = [row["policy"] for row in rows if row.get(metric) is None and row["policy"] in hiding]
    if overloaded:
        return f"{overloaded[0]} is overloaded: no steady state"
    few = next((lacks for row in rows if (lacks := missing_values(row, metric))), None)
    if few is None:
        return "undefined in some replication"
    return f"n too small: {few[0]} values in a run, at least {few[1]} are needed"


def _around(found: Interval) -> str:
    """Return an interval as text after its value, with the half-width if it is symmetric; empty without one."""
    if found.low is None or found.high is None:
        return ""
    if math.isclose(found.high - found.value, found.value - found.low, rel_tol=0.01):
        return f" ±{_plain((found.high - found.low) / 2, 2)}"
    return f" {_between(found)}"


def _between(found: Interval) -> str:
    """Return the ends of an interval; empty without one."""
    if found.low is None or found.high is None:
        return ""
    return f"[{_plain(found.low, 4)}, {_plain(found.high, 4)}]"


def _ends(name: str, own: Interval | None, together: Interval | None) -> dict[str, float | None]:
    """Return a quantity with the ends of its own interval and of the simultaneous one, as plain values."""
    return {
        name: own.value if own else None,
        f"ci_low_{name}": own.low if own else None,
        f"ci_high_{name}": own.high if own else None,
        f"simultaneous_low_{name}": together.low if together else None,
        f"simultaneous_high_{name}": together.high if together else None,
    }


def _plain(value: float, digits: int) -> str:
    """Return a number with this many significant digits or all before the decimal point, without an exponent."""
    if not abs(value) < 1000:
        return f"{value:,.0f}"
    return np.format_float_positional(value, precision=digits, unique=False, fractional=False, trim="-")
