"""Figures made from a result: drawn for ordinary, empty and single-request runs, labelled, and the same every time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import simqueue as sq
from simqueue import figures
from simqueue.errors import InputError
from simqueue.figures import canvas, cdf
from simqueue.figures.activity import kv_and_queue, step_composition, token_gaps
from simqueue.figures.capacity import capacity_figure
from simqueue.figures.roofline import roofline_figure
from simqueue.figures.timeline import Stay, batch_timeline, draw_stays
from simqueue.figures.tradeoff import chunk_figure, rate_figure, series_figure
from simqueue.results.result import Result
from simqueue.statistics.intervals import mean_interval
from simqueue.steptime import Batch
from simqueue.steptime.roofline import RooflineStepTime

ONE_SECOND = {"kind": "constant", "seconds": 1.0}
LINEAR = {"kind": "linear", "overhead_s": 0.01, "per_prefill_token_s": 0.001, "per_decode_s": 0.001}
STATIC = {"scheduler": "static", "max_num_seqs": 2}
CONTINUOUS = {"scheduler": "continuous", "max_num_seqs": 2, "max_num_batched_tokens": 512}


def played(requests: list[tuple[float, int, int]], policies: Mapping[str, Any], step: Any = ONE_SECOND) -> Result:
    """Play requests given as (arrival_s, prompt, output)."""
    asked = [
        {"id": f"r{i}", "arrival_s": at, "prompt_tokens": prompt, "output_tokens": output}
        for i, (at, prompt, output) in enumerate(requests)
    ]
    return sq.run(
        {
            "step_time": step,
            "kv_cache": {"blocks": 100},
            "workload": {"requests": asked},
            "policies": dict(policies),
            "slo": {"tpot_ms": 500},
        }
    )


@pytest.fixture(scope="module")
def several() -> Result:
    """Three requests through static waves and continuous batching."""
    return played([(0, 16, 2), (0, 16, 5), (1, 200, 3)], {"static": STATIC, "continuous": CONTINUOUS})


@pytest.fixture(scope="module")
def none_served() -> Result:
    """A run without served requests: the only request does not fit the pool."""
    return played([(0, 10_000, 3)], {"static": STATIC, "continuous": CONTINUOUS})


@pytest.fixture(scope="module")
def alone() -> Result:
    """One request of one token."""
    return played([(0, 16, 1)], {"continuous": CONTINUOUS})


FIGURES: Mapping[str, Callable[[Result], Figure]] = {
    "batch_timeline": batch_timeline,
    "step_composition": step_composition,
    "kv_and_queue": kv_and_queue,
    "token_gaps": token_gaps,
    "chunk_figure": lambda result: chunk_figure({64: result, 512: result}, result.policies[0], sweet_spot_tokens=120),
    "rate_figure": lambda result: rate_figure({2.0: result, 4.0: result}),
}


@pytest.mark.parametrize("run", ["several", "none_served", "alone"])
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_and_saved(name: str, run: str, request: pytest.FixtureRequest, tmp_path: Any) -> None:
    """Each comes as PNG and SVG without a warning, labelled, and twice as the same bytes."""
    figure = FIGURES[name](request.getfixturevalue(run))
    written = canvas.save(figure, tmp_path, name)
    assert [path.name for path in written] == [f"{name}.png", f"{name}.svg"]
    again = FIGURES[name](request.getfixturevalue(run))
    assert [path.read_bytes() for path in written] == [canvas.image(again, kind) for kind in ("png", "svg")]
    for ax in figure.axes:
        assert ax.get_ylabel() or ax.get_title(loc="left")
    assert figure.axes[-1].get_xlabel().endswith(")"), "with its unit"


@pytest.mark.parametrize("name", ["kv_and_queue", "token_gaps", "rate_figure"])
def test_the_legend_has_the_order_of_the_table(name: str, several: Result) -> None:
    """Policies stand in the legend as in the summary."""
    labels = [text.get_text() for text in FIGURES[name](several).legends[0].get_texts()]
    assert labels[:2] == [row["policy"] for row in several.summary_rows] == ["static", "continuous"]


def test_empty_runs_say_so(none_served: Result) -> None:
    """If there are no steps, the figure says so."""
    said = {
        name: [text.get_text() for ax in draw(none_served).axes for text in ax.texts] for name, draw in FIGURES.items()
    }
    assert said["batch_timeline"] == ["no request got a slot"]
    assert said["step_composition"] == said["kv_and_queue"] == ["no steps"]
    assert said["token_gaps"] == ["no decoding requests"]
    assert set(said["rate_figure"]) == {"undefined"}


def bars(figure: Figure) -> list[float]:
    """Return slot, start and end of each bar of a timeline, one after the other, empty ones left out."""
    found = [(p.get_y() + p.get_height() / 2, p.get_x(), p.get_x() + p.get_width()) for p in figure.axes[0].patches]
    return flat([bar for bar in found if bar[2] > bar[1]])


def flat(rows: list[tuple[float, float, float]]) -> list[float]:
    """Return the numbers of all rows in one list."""
    return [number for row in rows for number in row]


def test_a_slot_is_read_answers_and_is_held(several: Result) -> None:
    """Static wave of r0 (2 tokens) and r1 (5): prefill to 1 s, r0 answers to 2 s and is held to the end of the wave."""
    assert bars(batch_timeline(several, "static"))[:15] == pytest.approx(
        flat([(0, 0, 1), (0, 1, 2), (0, 2, 5), (1, 0, 1), (1, 1, 5)])
    )


def test_a_refilled_slot_has_two_requests(several: Result) -> None:
    """Continuous: r2 takes the slot of r0, which left at 2 s."""
    assert bars(batch_timeline(several, "continuous")) == pytest.approx(
        flat([(0, 0, 1), (0, 1, 2), (1, 0, 1), (1, 1, 5), (0, 2, 3), (0, 3, 5)])
    )


def test_gaps_are_the_steps_that_decode() -> None:
    """A prompt of 100 tokens in a step with a decode: 11 ms become 111 ms for that one step."""
    result = played([(0, 10, 6), (0.02, 100, 1)], {"continuous": CONTINUOUS}, LINEAR)
    y = np.asarray(token_gaps(result).axes[0].lines[0].get_ydata(), dtype=float)
    assert np.unique(np.round(y[~np.isnan(y)], 6)).tolist() == pytest.approx([11.0, 111.0])


def test_an_unknown_policy_is_named_with_the_nearest(several: Result) -> None:
    """A misspelt policy is an error that tells which was meant."""
    with pytest.raises(InputError, match="did you mean 'static'"):
        batch_timeline(several, "sttic")


def test_names_of_requests_are_shown_as_they_are() -> None:
    """A dollar sign in a request's name is text, not mathematics."""
    figure = canvas.new_figure()
    draw_stays(figure.subplots(), [Stay(0, "$x$", 0, 1, 9, 9)])
    assert figure.axes[0].texts[0].get_text() == r"\$x\$"


def test_operating_points_lie_on_the_roofline() -> None:
    """Each point reaches what its work a byte allows: the bandwidth's line, or the peak."""
    from simqueue.hardware import GpuSettings, ModelSettings, load_gpu, load_model

    shape = {"layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128, "parameters": 8e9}
    gpu = load_gpu(GpuSettings(bandwidth_bytes_per_s=1e12, flops_per_s=100e12))
    step = RooflineStepTime.of(load_model(ModelSettings.model_validate(shape)), gpu, bandwidth_share=1.0, mfu=1.0)
    batches = {"decode": Batch(1, 1, 100, (), 1), "prefill": Batch(prefill=((0, 4096),), sampled_rows=1)}
    figure = roofline_figure(step, batches, "toy")
    points = [line for line in figure.axes[0].lines if line.get_marker() not in ("None", None, "")]
    assert len(points) == 2
    for line in points:
        (x,), (y,) = line.get_xdata(), line.get_ydata()
        assert y == pytest.approx(min(x * 1e12, 100e12) / 1e12, rel=1e-9)
    assert canvas.image(figure, "png").startswith(b"\x89PNG")


@pytest.mark.parametrize(("prompt", "drawn"), [(10, False), (4096, True)])
def test_a_budget_far_above_the_steps_does_not_hide_them(prompt: int, drawn: bool) -> None:
    """Under a budget of 8,192 tokens a prompt of 10 fills its axes, and the legend says where the budget is."""
    figure = step_composition(played([(0, prompt, 3)], {"continuous": CONTINUOUS | {"max_num_batched_tokens": 8192}}))
    upper = figure.axes[0]
    assert (upper.get_ylim()[1] > 8192) == bool(upper.lines) == drawn
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[2] == "budget 8,192 tokens" + ("" if drawn else " (above the axis)")
    assert drawn or upper.get_ylim()[1] == pytest.approx(10, rel=0.2)


def test_the_room_offers_its_functions_by_name() -> None:
    """The functions that are loaded at first use are those of their modules; other names are errors."""
    assert figures.cdf_axes is cdf.cdf_axes
    with pytest.raises(AttributeError, match="has no attribute 'cdf_axis'"):
        _ = figures.cdf_axis


def test_lines_skip_what_is_undefined() -> None:
    """A None is left out of its line; a line of nothing says undefined."""
    figure = series_figure([1, 2, 4], {"a": [1.0, None, 3.0], "b": [None] * 3}, xlabel="x (s)", ylabel="y", title="t")
    assert figure.axes[0].lines[0].get_xdata().tolist() == [1, 4]
    assert [text.get_text() for text in figure.axes[0].texts] == ["undefined"]


class Curve:
    """A line of the capacity figure."""

    def __init__(self, policy: str, tpot: float | None) -> None:
        self.policy, self.capacity_rps, self.rates_rps = policy, 10.0, (1.0, 5.0)
        self.values = {"request_throughput": (1.0, 5.0), "mean_tpot_ms": (tpot, tpot), "mean_ttft_ms": (tpot, tpot)}


class Point:
    """A simulated point without an interval."""

    def __init__(self, policy: str) -> None:
        self.policy, self.rate_rps = policy, 4.0
        self.values = dict.fromkeys(("request_throughput", "mean_tpot_ms", "mean_ttft_ms"), mean_interval([4.0]))


def test_a_policy_without_a_line_says_why() -> None:
    """The legend tells no estimate of latencies from no formula at all; capacities are no lines."""
    figure = capacity_figure([Curve("chunked", 5.0), Curve("static", None)], [Point("own")], "title")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:4] == ["chunked", "static (no estimate of latencies)", "own (no formula)", "capacity"]
    assert figure.legends[0].legend_handles[3].get_linestyle() == "None"


def test_nearly_constant_estimates_have_readable_ticks() -> None:
    """A TPOT of 5 ms at all rates has at least two ticks without an exponent."""
    figure = capacity_figure([Curve("chunked", 5.0)], [], "title")
    canvas.settle(figure)
    axis = figure.axes[1].yaxis
    texts = axis.get_major_formatter().format_ticks(axis.get_majorticklocs())
    assert len(texts) >= 2
    assert all(float(text) for text in texts)


def test_four_entries_of_a_legend_are_two_and_two() -> None:
    """Four labels of which three fit side by side stand in two rows of two."""
    figure = canvas.new_figure(9.0, 3.0)
    figure.subplots()
    canvas.legend_below(figure, [Line2D([], [], label=f"a-rather-long-name-{i}") for i in range(4)])
    assert figure.legends[0]._ncols == 2
