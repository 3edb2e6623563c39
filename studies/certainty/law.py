"""The capacity law on random configurations: the closed form, what is printed, and what a simulated backlog carries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simqueue.errors import RunError
from simqueue.experiment.build import build_all
from simqueue.experiment.carried import carried
from simqueue.experiment.demand import asked_of, offered
from simqueue.experiment.limit import limit_of
from simqueue.experiment.served import server
from simqueue.figures import canvas
from simqueue.figures.style import figure_style
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.theory.capacity import capacity
from simqueue.theory.limits import Limit
from studies.certainty.backlogs import MANY, SEED, Configuration, configurations, resolved

SEEDS = (1, 2)
"""Backlogs per configuration; their mean rate is compared."""
PREEMPTS = 0.005
"""Preemptions per request from which a configuration counts as one with preemption."""
_NONE = 0.001
COMMAND = "python -m studies.certainty law"


@dataclass(frozen=True, slots=True)
class Compared:
    """One configuration: the rates of the closed form, of what is printed, and of simulated backlogs."""

    configuration: Configuration
    closed_rps: float
    limit: Limit
    backlogs_rps: tuple[float, ...]
    preemptions: float

    @property
    def simulated_rps(self) -> float:
        """The mean over the backlogs."""
        return float(np.mean(self.backlogs_rps))

    @property
    def before(self) -> float:
        """Relative error of the closed form."""
        return self.closed_rps / self.simulated_rps - 1

    @property
    def now(self) -> float:
        """Relative error of the printed capacity."""
        return self.limit.capacity.max_rate_rps / self.simulated_rps - 1

    @property
    def bounded(self) -> bool:
        """Whether bounds are printed."""
        return self.limit.low_rps is not None and self.limit.high_rps is not None

    @property
    def holds(self) -> bool:
        """Whether every simulated rate lies within the printed bounds, if there are any."""
        low, high = self.limit.low_rps or 0.0, self.limit.high_rps or math.inf
        return low <= min(self.backlogs_rps) and max(self.backlogs_rps) <= high


def compared(configuration: Configuration) -> Compared:
    """Return the rates of one configuration."""
    scenario = resolved(configuration)
    closed_rps, limit = predicted(scenario)
    backlogs = [carried(scenario, seed)["p"] for seed in SEEDS]
    preemptions = float(np.mean([one.preemptions for one in backlogs]))
    return Compared(configuration, closed_rps, limit, tuple(one.rate_rps for one in backlogs), preemptions)


def predicted(scenario: ResolvedScenario) -> tuple[float, Limit]:
    """Return the rate of the closed form and the printed capacity of the only policy."""
    load, (policy,) = offered(scenario), build_all(scenario).values()
    described = server(policy)
    if load is None or described is None:
        raise RunError("a configuration without a capacity")
    asked, step_time = asked_of(policy, load), scenario.policies[0].step_time
    return capacity(step_time, asked.lengths, described).max_rate_rps, limit_of(step_time, described, asked)


def write(folder: Path) -> list[Path]:
    """Compare all configurations; write the page and its figure."""
    rows = [compared(one) for one in configurations()]
    page, picture = folder / "law.md", folder / "law.png"
    _draw(rows, picture)
    page.write_text(_page(rows, picture.name), encoding="utf-8")
    return [page, picture]


def _page(rows: Sequence[Compared], picture: str) -> str:
    return "\n".join(
        [
            f"<!-- Made by `{COMMAND}`. -->",
            "",
            "# The capacity law on random configurations",
            "",
            f"{MANY} configurations, drawn with seed {SEED}: eight policies (vLLM 0.11, 0.19 and 0.33, `chunked`,",
            "`continuous`, `static`, prompts apart from decodes, and one slot), linear and roofline steps, several",
            "models and GPUs, constant, geometric, lognormal, uniform and Pareto lengths (power 1.1 to 2.2), budgets",
            "of 256 to 8,192, 4 to 512 seats, and pools from plenty to hardly more than the largest request. Each is",
            f"compared with the mean rate of {len(SEEDS)} simulated backlogs, which is itself known to some 2 to 5 %",
            "only, for static waves with long tails to 10 %. *Closed form* is the law alone; *printed* is what",
            "`simqueue capacity` and `load` use: the closed form, or where it is in doubt a backlog played in steps.",
            "",
            *_summary(rows),
            "",
            f"![Predicted over simulated capacity]({picture})",
            "",
            "## All configurations",
            "",
            *_details(rows),
            "",
        ]
    )


_KINDS: tuple[tuple[str, Callable[[Compared], bool]], ...] = (
    ("without preemption", lambda row: row.preemptions < PREEMPTS),
    ("of these, without bounds", lambda row: row.preemptions < PREEMPTS and not row.bounded),
    ("of these, with bounds", lambda row: row.preemptions < PREEMPTS and row.bounded),
    ("with preemption", lambda row: row.preemptions >= PREEMPTS),
)


def _summary(rows: Sequence[Compared]) -> list[str]:
    lines = [
        "| configurations | number | closed form: median, P90, worst error | printed: median, P90, worst error "
        "| bounds printed | bounds hold |",
        "|---|---|---|---|---|---|",
    ]
    for name, belongs in _KINDS:
        kind = [row for row in rows if belongs(row)]
        bounded = [row for row in kind if row.bounded]
        errors = (_spread([row.before for row in kind]), _spread([row.now for row in kind]))
        held = sum(row.holds for row in bounded)
        lines.append(f"| {name} | {len(kind)} | {errors[0]} | {errors[1]} | {len(bounded)} | {held} |")
    return lines


def _spread(errors: Sequence[float]) -> str:
    if not errors:
        return "-"
    middle, most, worst = 100 * np.percentile(np.abs(errors), [50, 90, 100])
    return f"{middle:.1f} %, {most:.1f} %, {worst:.0f} %"


def _details(rows: Sequence[Compared]) -> list[str]:
    lines = [
        "| | policy | steps | pool | prompts | outputs | preemptions per request | simulated, req/s | closed form "
        "| printed | bounds, req/s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        one = row.configuration
        bounds = f"{row.limit.low_rps:.3g} to {row.limit.high_rps:.3g}" if row.bounded else "-"
        lines.append(
            f"| {one.name} | {one.policy} | {one.steps} | {one.pressure} | {one.prompts} | {one.outputs} "
            f"| {row.preemptions:.2f} | {row.simulated_rps:.3g} | {100 * row.before:+.1f} % | {100 * row.now:+.1f} % "
            f"| {bounds} |"
        )
    return lines


def _draw(rows: Sequence[Compared], picture: Path) -> None:
    """Draw the errors of both over the preemptions per request."""
    with figure_style():
        figure = canvas.new_figure(8.4, 3.6)
        axes = figure.subplots(1, 2, sharey=True)
        panels = ("closed form", [row.before for row in rows]), ("printed", [row.now for row in rows])
        for ax, (title, errors) in zip(axes, panels, strict=True):
            ax.axhspan(-10, 10, color="0.92")
            preemptions = [max(row.preemptions, _NONE) for row in rows]
            ax.scatter(preemptions, [100 * error for error in errors], s=14, color="#0173b2")
            ax.set(xscale="log", title=title, xlabel=f"preemptions per request ({_NONE}: none)")
            ax.set_yscale("symlog", linthresh=10)
            ax.set_yticks([-30, -10, 0, 10, 30, 100, 300], ["−30", "−10", "0", "10", "30", "100", "300"])
        axes[0].set_ylabel("error of the capacity (%)")
    canvas.write(figure, picture)
