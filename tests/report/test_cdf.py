"""Figures of latency distributions. Warnings are errors here, those of the drawing libraries included."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simqueue.errors import InputError
from simqueue.figures.canvas import settle
from simqueue.figures.cdf import METRICS, cdf_axes, cdf_figure, latency_figure
from simqueue.figures.plots import save_figures
from simqueue.figures.style import line_styles

FACTOR = {"ttft_ms": 1, "tpot_ms": 1, "itl_ms": 1, "e2el_ms": 2}


def curves(ax: Axes) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Return the drawn distributions as (x, y) without their start at minus infinity."""
    drawn = [line.get_data() for line in ax.lines if len(line.get_xdata()) > 2]
    return [(np.asarray(x)[1:], np.asarray(y)[1:]) for x, y in drawn]


def legend(owner: Axes | Figure) -> list[str]:
    """Return the texts of a legend in order."""
    found = owner.get_legend() if isinstance(owner, Axes) else owner.legends[0]
    return [text.get_text() for text in found.get_texts()]


@pytest.mark.parametrize("metric", METRICS)
def test_a_curve_is_the_share_at_or_below_each_value(result_of: Any, metric: str) -> None:
    """At the i-th smallest of n values the curve stands at i/n, for each policy in order."""
    samples = {"slow": [400.0, 100.0, 200.0, 300.0], "fast": [30.0, 10.0]}
    ax = cdf_axes(result_of(samples), metric)
    for (x, y), values in zip(curves(ax), samples.values(), strict=True):
        assert x == pytest.approx(np.sort(values) * FACTOR[metric])
        assert y == pytest.approx(np.arange(1, len(values) + 1) / len(values))


def test_axes_tell_metric_unit_and_scale(result_of: Any) -> None:
    """x is logarithmic with its unit, y a share from 0 to 1, ticks are plain numbers."""
    ax = cdf_axes(result_of({"p": [1.0, 2000.0]}), "ttft_ms")
    assert (ax.get_xscale(), ax.get_xlabel(), ax.get_title("left")) == (
        "log",
        "TTFT (ms)",
        "Time to first token (TTFT)",
    )
    assert ax.get_ylim()[0] == 0
    assert 1 <= ax.get_ylim()[1] < 1.05
    ax.figure.canvas.draw()
    assert {"1", "10", "100", "1,000"} <= {tick.get_text() for tick in ax.get_xticklabels()}


def test_the_slo_is_marked_where_there_is_one(result_of: Any) -> None:
    """A dashed vertical line with a label stands at the SLO of the metric, inside the axis, and nowhere else."""
    result = result_of({"p": [10.0, 20.0]}, slo={"ttft_ms": 500})
    ax = cdf_axes(result, "ttft_ms")
    (mark,) = [line for line in ax.lines if list(line.get_xdata()) == [500, 500]]
    assert mark.is_dashed()
    assert [text.get_text() for text in ax.texts] == ["SLO 500 ms"]
    low, high = ax.get_xlim()
    assert (low < 10, high > 500) == (True, True)
    assert not cdf_axes(result, "tpot_ms").texts


def test_the_legend_keeps_the_order_and_shows_n(result_of: Any) -> None:
    """Policies stand in the legend as in the table, each with the number of requests behind its curve."""
    result = result_of({"zebra": [1.0] * 1200, "ant": [2.0], "none": []})
    assert legend(cdf_figure(result, "ttft_ms")) == ["zebra (n = 1,200)", "ant (n = 1)", "none (n = 0)"]


def test_the_common_legend_tells_a_differing_n_of_tpot(result_of: Any) -> None:
    """Where one-token outputs have no TPOT, the legend of the three panels gives both numbers."""
    result = result_of({"p": [1.0, 2.0, 3.0]})
    for column in ("output_tokens", "tokens_emitted"):
        result.runs[0].recording.requests[column][0] = 1
    assert legend(latency_figure(result)) == ["p (n = 3, TPOT 2)"]


@pytest.mark.parametrize("status", ["rejected", "timed_out", "unfinished"])
def test_only_finished_requests_are_drawn(result_of: Any, status: str) -> None:
    """Without finished requests a figure is drawn and says so."""
    result = result_of({"p": [1.0, 2.0]}, status=status, slo={"ttft_ms": 500})
    figure = cdf_figure(result, "ttft_ms")
    assert "no finished requests" in [text.get_text() for text in figure.axes[0].texts]
    assert legend(figure) == ["p (n = 0)"]
    figure.canvas.draw()


def test_requests_of_the_warmup_are_not_drawn(result_of: Any) -> None:
    """Figures are of the same requests as the latencies of the summary."""
    result = result_of({"p": [1.0, 2.0, 3.0]}, warmup_s=1.0)
    result.runs[0].recording.requests["arrival_s"][:] = [0.0, 1.0, 2.0]
    assert legend(cdf_figure(result, "ttft_ms")) == ["p (n = 2)"]


def test_outputs_of_one_token_alone_have_no_tpot_to_draw(result_of: Any) -> None:
    """A figure of TPOT without a request that has one tells why it is empty."""
    result = result_of({"p": [1.0]})
    result.runs[0].recording.requests["tokens_emitted"][:] = 1
    assert [t.get_text() for t in cdf_axes(result, "tpot_ms").texts] == ["no outputs of two or more tokens"]


@pytest.mark.parametrize(
    "values", [[7.0], [5.0] * 50, [0.0], [0.0, 0.0], [0.0, 100.0], [1e-3, 1e6], [10.0, 10.0000001]], ids=str
)
def test_small_equal_and_zero_samples_are_drawn(result_of: Any, values: list[float]) -> None:
    """A single value, equal values, zeros and very wide ranges are drawn, with every positive value on the axis."""
    figure = cdf_figure(result_of({"p": values}), "ttft_ms")
    figure.canvas.draw()
    low, high = figure.axes[0].get_xlim()
    assert 0 < low < high
    assert all(low < value < high for value in values if value > 0)


def test_a_curve_of_zeros_can_be_seen(result_of: Any) -> None:
    """Where every value is 0, which a logarithmic axis has not, a line at the height 1 crosses the whole axis."""
    ax = cdf_axes(result_of({"p": [0.0, 0.0]}), "ttft_ms")
    assert [1, 1] in [list(line.get_ydata()) for line in ax.lines]


def test_no_policy_at_all_is_drawn(result_of: Any, tmp_path: Path) -> None:
    """An empty result gives figures that say so."""
    assert [path.name for path in save_figures(result_of({}), tmp_path)] == ["latency_cdfs.png", "latency_cdfs.svg"]


@pytest.mark.parametrize("name", ["_hidden", "cost $5 or $6", "a_b^c", "x" * 80, "p\\q", "état"])
def test_policy_names_are_shown_as_they_are(result_of: Any, name: str) -> None:
    """Names that a drawing library would read as commands, or leave out, are drawn literally."""
    result = result_of({name: [1.0], "other": [2.0]})
    figure = cdf_figure(result, "ttft_ms")
    figure.canvas.draw()
    assert legend(figure)[0].replace(r"\$", "$") == f"{name} (n = 1)"


def test_a_metric_without_a_figure_is_refused_with_the_nearest_name(result_of: Any) -> None:
    """A misspelt metric is an error that names the valid one."""
    with pytest.raises(InputError, match=r"unknown metric 'ttft'; did you mean 'ttft_ms'\?"):
        result_of({"p": [1.0]}).plot_cdf("ttft")


def test_plot_cdf_draws_onto_given_axes(result_of: Any) -> None:
    """Given axes are drawn on and returned, with a legend of their own; without, a new figure carries them."""
    given = Figure().subplots()
    result = result_of({"p": [1.0, 2.0]})
    assert result.plot_cdf("ttft_ms", given) is given
    assert legend(given) == ["p (n = 2)"]
    assert isinstance(result.plot_cdf("ttft_ms"), Axes)


def test_drawing_touches_no_global_state(result_of: Any, tmp_path: Path) -> None:
    """No figure is left with pyplot, and the user's settings are as before."""
    before = dict(plt.rcParams)
    save_figures(result_of({"p": [1.0, 2.0]}), tmp_path)
    assert plt.get_fignums() == []
    assert dict(plt.rcParams) == before


def test_the_users_settings_do_not_change_saved_figures(result_of: Any, tmp_path: Path) -> None:
    """Files are the same bytes whatever style the user works with, and however often they are written."""
    result = result_of({"p": [1.0, 2.0], "q": [3.0]}, slo={"ttft_ms": 2})
    plain = save_figures(result, tmp_path / "plain")
    with plt.style.context(["dark_background", {"font.size": 20, "path.simplify": False}]):
        styled = save_figures(result, tmp_path / "styled")
    assert [path.read_bytes() for path in plain] == [path.read_bytes() for path in styled]


def test_line_styles_differ_without_colour() -> None:
    """The first seven lines differ in their dashes alone, the first 63 in dashes and colour together."""
    styles = line_styles(63)
    assert len({style.dashes for style in styles[:7]}) == 7
    assert len(set(styles)) == 63


def test_the_tail_is_the_share_above_each_value(result_of: Any) -> None:
    """Of 2,000 requests from 1 to 2,000 ms, 1 % take more than 1,980 and 0.1 % more than 1,998 ms."""
    figure = cdf_figure(result_of({"p": [float(i) for i in range(1, 2001)]}), "ttft_ms")
    tail = figure.axes[1]
    assert tail.get_yscale() == "log"
    x, y = (np.asarray(values) for values in tail.lines[0].get_data())
    for value, above in ((1980.0, 0.01), (1998.0, 0.001)):
        assert y[np.searchsorted(x, value, side="right") - 1] == pytest.approx(above, abs=1e-9)
    texts = [tail.yaxis.get_major_formatter()(place) for place in tail.yaxis.get_majorticklocs()]
    assert {"1% (P99)", "0.1% (P99.9)"} <= set(texts)


def test_the_latency_figure_has_the_gaps_between_tokens(result_of: Any) -> None:
    """Each of the four metrics has a column; the one of ITL has the gaps of the run."""
    result = result_of({"p": [10.0, 20.0, 40.0]})
    figure = latency_figure(result)
    assert [ax.get_title("left") for ax in figure.axes[:4]] == list(METRICS.values())
    x, _ = figure.axes[list(METRICS).index("itl_ms")].lines[0].get_data()
    assert sorted(set(x)) == pytest.approx([10.0, 20.0, 40.0])


def test_large_samples_are_drawn_with_few_exact_points(result_of: Any) -> None:
    """Of 30,000 requests, at most 1,201 points are drawn, each with its exact share, and the largest are among them."""
    values = np.random.default_rng(3).lognormal(3, 1, 30_000)
    ax = cdf_axes(result_of({"p": values.tolist()}), "ttft_ms")
    ((x, y),) = curves(ax)
    assert len(x) <= 1200
    ordered = np.sort(values)
    assert y == pytest.approx(np.searchsorted(ordered, x * (1 + 1e-12), side="right") / len(ordered))
    assert x[-2:] == pytest.approx(ordered[-2:])


def test_labels_of_neighbouring_panels_do_not_touch(result_of: Any) -> None:
    """With latencies up to a million milliseconds, the labels below the four columns stand apart."""
    figure = latency_figure(result_of({"p": [10.0 * 1.3**i for i in range(44)]}))
    settle(figure)
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for ax in figure.axes[4:] for label in ax.get_xticklabels() if label.get_text()]
    boxes.sort(key=lambda box: box.x0)
    assert len(boxes) >= 8
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
    assert boxes[-1].x1 <= figure.bbox.x1
