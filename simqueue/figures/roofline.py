"""The roofline plot: the performance a GPU can reach over operational intensity, with steps as points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from simqueue.figures.canvas import LEVEL, WIDTH, legend_below, new_figure, number
from simqueue.figures.style import figure_style, line_styles, literal
from simqueue.steptime.base import Batch
from simqueue.steptime.roofline import RooflineStepTime

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKERS: Final = "osD^vPX*"


def roofline_figure(model: RooflineStepTime, batches: Mapping[str, Batch], title: str) -> Figure:
    """Return attained FLOP/s over FLOPs per byte, both axes logarithmic, one point per batch.

    Parameters
    ----------
    model : RooflineStepTime
    batches : mapping of label to Batch
        Operating points, such as a decode step, a prefill and a mixed step.
    title : str
    """
    ridge = model.layer_flops_per_s / model.bytes_per_s
    points = {label: _point(model, batch) for label, batch in batches.items()}
    lowest = min([0.5, *(intensity for intensity, _ in points.values())])
    highest = max([10 * ridge, *(intensity for intensity, _ in points.values())])
    intensity = np.geomspace(lowest / 2, 2 * highest, 200)
    attainable = np.minimum(intensity * model.bytes_per_s, model.layer_flops_per_s) / 1e12
    with figure_style():
        figure = new_figure(WIDTH, 5)
        ax = figure.subplots()
        ax.plot(intensity, attainable, color="0.2", linewidth=1.8, label="roofline")
        ax.axvline(ridge, label=f"ridge point: {number(ridge)} FLOP/byte", **LEVEL)
        styles = line_styles(len(points))
        for index, ((label, (x, y)), style) in enumerate(zip(points.items(), styles, strict=True)):
            marker = _MARKERS[index % len(_MARKERS)]
            ax.plot(x, y / 1e12, linestyle="none", color=style.color, marker=marker, markersize=8, label=literal(label))
        ax.set(xscale="log", yscale="log", title=literal(title))
        ax.set(xlabel="operational intensity (FLOP/byte)", ylabel="attained performance (TFLOP/s)")
        legend_below(figure, ax.get_legend_handles_labels()[0])
    return figure


def _point(model: RooflineStepTime, batch: Batch) -> tuple[float, float]:
    """Return the operational intensity of a step in FLOP/byte and its performance in FLOP/s."""
    terms = model.terms(batch)
    flops = terms.linear_flops + terms.head_flops + terms.attention_flops
    return flops / (terms.weight_bytes + terms.kv_bytes), flops / terms.seconds
