"""The page on power: errors that ``verify`` finds, selections that ``best`` makes, ratios that ``compare`` covers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from simqueue.experiment.verification import LARGEST_ERROR, POWER, REPLICATIONS, SIGNIFICANCE
from simqueue.figures.canvas import LEVEL, new_figure
from simqueue.figures.style import figure_style, line_styles
from studies.certainty import planted, ratios, selecting

PAGE: Final = "power.md"
FIGURE: Final = "power.png"
_SHOWN: Final = planted.ERRORS[1:]


def write(folder: Path) -> list[Path]:
    """Measure power, selection and coverage of ratios, and write the page and its figure."""
    found = planted.measured(planted.simulated())
    lines = [
        "<!-- Made by: python -m studies.certainty power -->",
        "# Power of verification, selection of the best, ratios",
        "",
        *_power(found),
        *_selection(selecting.measured(selecting.bank())),
        *_ratios(ratios.measured()),
    ]
    with figure_style():
        _figure(found).savefig(folder / FIGURE, dpi=110, metadata={"Software": None})
    (folder / PAGE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [folder / PAGE, folder / FIGURE]


def _power(found: Sequence[planted.Found]) -> Iterator[str]:
    yield "## Errors that `simqueue verify` finds"
    yield ""
    yield (
        f"Each built-in case has {REPLICATIONS} replications. A row differs if a t-test says so, with a significance "
        f"of {SIGNIFICANCE:.0%} for all {len(found)} rows together, and agrees only if it detects {LARGEST_ERROR:.0%} "
        f"with probability {POWER:g}. Errors are planted by moving the values of the replications to the theory, "
        f"drawing them with replacement ({planted.TRIES:,} times), and multiplying them. *Before*: ten replications "
        "of the earlier cases, normally distributed with the half-widths that they had; a mean agreed within three "
        "of these or 2 %, and with a half-width above 3 % there was no verdict."
    )
    yield ""
    alarms = [one.now[0] for one in found]
    least = min(found, key=lambda one: one.now[planted.ERRORS.index(0.05)])
    old = [one.before[planted.ERRORS.index(0.05)] for one in found]
    yield (
        f"**False alarms: {np.mean(alarms):.2%} of a row on average, {max(alarms):.1%} at most. A planted 5 % is found "
        f"in {least.now[planted.ERRORS.index(0.05)]:.0%} of the tries in the worst row ({least.row.case}, "
        f"{_metric(least.row.metric)}); before, in {min(old):.0%}, and in {np.median(old):.0%} in the median row.**"
    )
    yield ""
    yield f"![Share of planted errors that are found, per row, before and now]({FIGURE})"
    yield ""
    heads = [f"{error:.0%}" for error in planted.ERRORS]
    yield from _table(
        ["case", "mean", "detects", *(f"now {head}" for head in heads), *(f"before {head}" for head in heads)],
        (
            [one.row.case, _metric(one.row.metric), f"{one.detectable:.1%}", *map(_share, (*one.now, *one.before))]
            for one in found
        ),
    )


def _selection(found: Sequence[selecting.Selected]) -> Iterator[str]:
    yield "## Selection of the best"
    yield ""
    yield (
        f"{selecting.TRIES} searches of each problem with `simqueue best`'s rule and a confidence of "
        f"{selecting.CONFIDENCE:.0%}. *Right*: the best, or within the zone of it. *Runs* are runs of single "
        "alternatives. Equal allocation in three ways: the same rule without dropping; a number fixed after ten "
        "replications that gives the same guarantee (Clark and Yang 1986, pairs with the best one); and the least "
        "number with which 95 % select rightly, which only one who knows the answer can choose. The normal problems "
        "have a zone of 1 and a standard deviation of 4, half of the variance shared, except the last one. The "
        f"scenario has five policies at 8 requests per second, {selecting.BANK} replications of 200 requests, drawn "
        "with replacement, and a zone of 5 % of the best mean TTFT."
    )
    yield ""
    yield from _table(
        [
            "alternatives",
            "right",
            "runs",
            "without dropping",
            "fixed by rule",
            "known in advance",
            "runs / fixed by rule",
        ],
        (
            [
                one.problem,
                f"{one.right:.1%}",
                f"{one.runs:.0f}",
                f"{one.without_dropping:.0f}",
                f"{one.by_rule:,.0f}",
                f"{one.by_oracle}",
                _quotient(one.runs / one.by_rule),
            ]
            for one in found
        ),
    )
    yield (
        "Where one alternative varies much more than the others, the fixed rule wants to know it as well as the zone "
        "says, although it is far behind; there, only the other two columns are a fair comparison."
    )
    yield ""


def _ratios(found: Sequence[ratios.Covered]) -> Iterator[str]:
    yield "## Coverage of ratios of means"
    yield ""
    yield (
        f"Share of nominal 95 % intervals that contain the true ratio of means, {ratios.TRIES:,} experiments each. "
        "*Before* is the interval of the mean logarithm of the ratios."
    )
    yield ""
    heads = [f"{label} {n}" for label in ("now", "before") for n in ratios.REPLICATIONS]
    yield from _table(
        ["paired values", *heads], ([one.kind, *(f"{share:.1%}" for share in (*one.now, *one.before))] for one in found)
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join('---' for _ in heads)}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def _quotient(value: float) -> str:
    return f"{value:.2f}" if value >= 0.01 else "<0.01"


def _share(value: float) -> str:
    return f"{100 * value:.0f}" if value >= 0.1 or value == 0 else f"{100 * value:.1f}"


def _metric(name: str) -> str:
    return name.removeprefix("mean_").removesuffix("_ms").upper()


def _figure(found: Sequence[planted.Found]) -> Figure:
    figure = new_figure(height=3.6)
    panels = figure.subplots(1, 2, sharey=True)
    styles = line_styles(len(planted.BEFORE))
    cases = list(planted.BEFORE)
    for ax, title in zip(panels, ("before", "now"), strict=True):
        for one in found:
            shares = (one.now if title == "now" else one.before)[1:]
            style = styles[cases.index(one.row.case)]
            ax.plot(_SHOWN, shares, color=style.color, linestyle=style.linestyle, marker="o", markersize=3)
        ax.axvline(LARGEST_ERROR, **LEVEL)
        ax.axhline(POWER, **LEVEL)
        ax.set_xscale("log")
        ax.set_xticks(_SHOWN, [f"{error:.0%}" for error in _SHOWN])
        ax.minorticks_off()
        ax.set_title(f"{title}: one line per mean", fontsize=10)
        ax.set_xlabel("planted error (% of the theory)")
    panels[0].set_ylabel("found (% of the tries)")
    panels[0].yaxis.set_major_formatter(PercentFormatter(1))
    return figure
