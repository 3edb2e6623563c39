"""The figure of a global sensitivity analysis: bars with intervals, one panel per policy and metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from matplotlib.patches import Patch

from simqueue.figures.canvas import WIDTH, legend_below, new_figure, say_empty
from simqueue.figures.style import PALETTE, drawable, figure_style, literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS: Final = 3
_BAR: Final = 0.38
_SHOWN: Final = {
    "morris": {"mu_star": "mu*: mean size of the effects", "sigma": "sigma: spread of the effects"},
    "sobol": {"S1": "S1: share of the variance by itself", "ST": "ST: with its interactions"},
}
"""Method -> index -> what it is."""


class _Index(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


class _Moved(Protocol):
    @property
    def policy(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def factor(self) -> str: ...
    @property
    def indices(self) -> tuple[_Index, ...]: ...


def sensitivity_figure(rows: Sequence[_Moved], method: str, labels: Mapping[str, str]) -> Figure:
    """Return the figure: for each factor a bar per index, with its 95 % interval.

    Parameters
    ----------
    rows : sequence
        As `GlobalSensitivity.rows`.
    method : {"morris", "sobol"}
    labels : mapping of str to str
        Metric -> its label, with the unit.
    """
    panels: dict[tuple[str, str], list[_Moved]] = {}
    for row in rows:
        panels.setdefault((row.policy, row.metric), []).append(row)
    columns = min(_COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    factors = max(map(len, panels.values()))
    shown = _SHOWN[method]
    with figure_style():
        figure = new_figure(WIDTH, lines * (1.1 + 0.42 * factors))
        axes = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
        for ax, ((policy, metric), found) in zip(axes, panels.items(), strict=False):
            _draw(ax, found, tuple(shown))
            ax.set_title(literal(drawable(f"{policy}: {labels[metric]}")))
            unit = "ms" if metric.endswith("_ms") else "unit of the metric"
            ax.set_xlabel("share of the variance" if method == "sobol" else f"effect over the whole range ({unit})")
        for ax in axes[len(panels) :]:
            ax.set_visible(False)
        colors = zip(shown.values(), PALETTE, strict=False)
        legend_below(figure, [Patch(facecolor=color, label=text) for text, color in colors])
    return figure


def _draw(ax: Axes, rows: Sequence[_Moved], names: tuple[str, ...]) -> None:
    for number, name in enumerate(names):
        found = [next(one for one in row.indices if one.name == name) for row in rows]
        known = [(place, one.value, one.low, one.high) for place, one in enumerate(found)]
        for place, value, low, high in known:
            if value is None or low is None or high is None:
                continue
            at = place + (number - 0.5) * _BAR
            ends = ([max(0.0, value - low)], [max(0.0, high - value)])
            ax.barh(at, value, _BAR, color=PALETTE[number], xerr=ends, error_kw={"ecolor": "0.2", "capsize": 2})
    if all(one.value is None for row in rows for one in row.indices):
        say_empty(ax, "does not vary")
    ax.set_yticks(range(len(rows)), [literal(drawable(row.factor)) for row in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")
