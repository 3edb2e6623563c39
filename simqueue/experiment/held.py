"""Comparisons of policies that are asked for again with step times that are off: which verdicts hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from simqueue.experiment.at_errors import AS_IS, at_errors
from simqueue.experiment.comparing import Compared, compared
from simqueue.experiment.metric_names import better
from simqueue.report.lines import metric_label

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simqueue.experiment.at_errors import Errors, Runs
    from simqueue.results.result import Result
    from simqueue.scenario.resolved import ResolvedScenario

Holds = Literal["holds", "flips", "not shown", "unknown"]
_OPPOSITE: Final = {"better": "worse", "worse": "better", "higher": "lower", "lower": "higher"}


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A comparison with step times that are off.

    Attributes
    ----------
    factor, baseline_factor : float
        Of the step times of the policy and of the baseline.
    said : str
        The same in words.
    row : Compared
    """

    factor: float
    baseline_factor: float
    said: str
    row: Compared


@dataclass(frozen=True, slots=True)
class Held:
    """A comparison, and the same one at the ends of the published errors.

    Attributes
    ----------
    row : Compared
        With the step times as they are.
    elsewhere : tuple of Elsewhere
        Empty if neither policy has a published error.
    """

    row: Compared
    elsewhere: tuple[Elsewhere, ...]

    @property
    def others(self) -> tuple[Elsewhere, ...]:
        """Those with another verdict."""
        return tuple(one for one in self.elsewhere if shown(one.row) != shown(self.row))

    @property
    def holds(self) -> Holds:
        """Whether the verdict is the same at all ends.

        "flips": the opposite is shown at one of them; "not shown": it is neither shown at all of them, nor is the
        opposite at any; "unknown": no error is known.
        """
        if not self.elsewhere:
            return "unknown"
        verdicts = [shown(self.row), *(shown(one.row) for one in self.elsewhere)]
        if any(_OPPOSITE.get(verdict) in verdicts for verdict in verdicts):
            return "flips"
        return "not shown" if self.others else "holds"

    @property
    def line(self) -> str:
        """Where the verdict is another one; empty if it is nowhere."""
        if not self.others:
            return ""
        row = self.row
        flips = "flips within the published error: " if self.holds == "flips" else ""
        where = "; ".join(f"{shown(one.row)} if {one.said}" for one in self.others)
        return f"{flips}{metric_label(row.metric)}: {row.policy} against {row.baseline}: {shown(row)}; {where}"

    def plain(self) -> dict[str, Any]:
        """Return plain values: those of the comparison, and `model_error`."""
        elsewhere = [
            {
                "step_time_factor": one.factor,
                "baseline_step_time_factor": one.baseline_factor,
                "difference": one.row.plain()["difference"],
                "verdict": shown(one.row),
            }
            for one in self.elsewhere
        ]
        return {**self.row.plain(), "model_error": {"holds": self.holds, "elsewhere": elsewhere}}


def shown(row: Compared) -> str:
    """Return the verdict of a comparison; of single runs, that of the difference between the two."""
    if row.verdict is not None or row.found is None:
        return str(row.verdict)
    difference = row.found.difference.value
    if difference == 0:
        return "the same"
    found = "higher" if difference > 0 else "lower"
    wanted = better(row.metric)
    return found if not wanted else "better" if found == wanted else "worse"


@dataclass(frozen=True, slots=True)
class HeldTable:
    """All comparisons of a scenario at the ends of the published errors.

    Attributes
    ----------
    result : Result
        Runs with the step times as they are.
    errors : Errors
    rows : tuple of Held
    """

    result: Result
    errors: Errors
    rows: tuple[Held, ...]


def held(scenario: ResolvedScenario, runs: Runs, baseline: str | None, metrics: Sequence[str]) -> HeldTable:
    """Compare policies with the step times as they are, and at all ends of their published errors.

    Step times from one preset on the same GPUs are off together; those of others, each in its own direction. At each
    end, the verdicts are those of a whole table.

    Parameters
    ----------
    scenario : ResolvedScenario
    runs : callable
        Runs a scenario.
    baseline, metrics
        As for `compared`.

    Raises
    ------
    InputError
        If no policy has a published error.
    RunError
        If a run fails.
    """
    errors, results = at_errors(scenario, runs)
    result = results[AS_IS]
    tables = {
        (own, other): compared(results[own], baseline, metrics, results[other], confidence=result.confidence)
        for own in results
        for other in results
    }
    rows = [Held(row, tuple(_elsewhere(place, row, errors, tables))) for place, row in enumerate(tables[AS_IS, AS_IS])]
    return HeldTable(result, errors, tuple(rows))


def _elsewhere(
    place: int, row: Compared, errors: Errors, tables: Mapping[tuple[int, int], Sequence[Compared]]
) -> list[Elsewhere]:
    policy, base = row.policy, row.baseline
    return [
        Elsewhere(
            errors.factor(policy, ways[policy]),
            errors.factor(base, ways[base]),
            errors.said(ways),
            tables[ways[policy], ways[base]][place],
        )
        for ways in errors.directions(policy, base)
    ]
