"""The figures of a result by name, for Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simqueue.errors import InputError
from simqueue.figures.activity import kv_and_queue, step_composition, token_gaps
from simqueue.figures.arrivals import arrivals_and_capacity
from simqueue.figures.canvas import save
from simqueue.figures.cdf import latency_figure
from simqueue.figures.fleetload import imbalance_over_time, replica_load
from simqueue.figures.fleetrequests import has_prefix_hits, prefix_hits, ttft_parts
from simqueue.figures.overtime import over_time
from simqueue.figures.timeline import batch_timeline
from simqueue.figures.view import fleets_of
from simqueue.figures.window import busiest_window, check_window
from simqueue.names import unknown

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from simqueue.figures.view import ResultView
    from simqueue.figures.window import Window


@dataclass(frozen=True, slots=True)
class _Plot:
    """A figure, and whether it is of one policy, and of a part of the run."""

    draw: Callable[..., Figure]
    of_one_policy: bool = False
    of_a_window: bool = True


PLOTS = {
    "latencies": _Plot(latency_figure, of_a_window=False),
    "arrivals": _Plot(arrivals_and_capacity, of_a_window=False),
    "kv_and_queue": _Plot(lambda result, window: kv_and_queue(result, mark=window)),
    "token_gaps": _Plot(token_gaps),
    "means_over_time": _Plot(over_time, of_a_window=False),
    "replica_load": _Plot(replica_load, of_a_window=False),
    "imbalance": _Plot(imbalance_over_time, of_a_window=False),
    "prefix_hits": _Plot(prefix_hits, of_a_window=False),
    "ttft_parts": _Plot(ttft_parts, of_a_window=False),
    "steps": _Plot(step_composition, of_one_policy=True),
    "slots": _Plot(batch_timeline, of_one_policy=True),
}


OF_FLEETS: Mapping[str, Callable[[ResultView], Figure]] = {
    "replica_load": replica_load,
    "imbalance": imbalance_over_time,
    "prefix_hits": prefix_hits,
    "ttft_parts": ttft_parts,
}


def plot(result: ResultView, name: str, policy: str | None = None, window: Window | None = None) -> Figure:
    """Draw one of the figures of a report.

    Parameters
    ----------
    result : ResultView
    name : {"latencies", "arrivals", "kv_and_queue", "token_gaps", "means_over_time", "replica_load", "imbalance",
        "prefix_hits", "ttft_parts", "steps", "slots"}
    policy : str, optional
        For `steps` and `slots`, which show one policy; by default the first one.
    window : (float, float), optional
        Start and end in seconds of the part of the run that figures over time show; by default the busiest part.

    Raises
    ------
    InputError
        If there is no such figure or policy, if the figure has no policy or window, or if the window is not in the run.
    """
    if name not in PLOTS:
        raise InputError(unknown("figure", name, PLOTS))
    chosen = PLOTS[name]
    given: dict[str, Any] = {}
    if chosen.of_one_policy:
        given["policy"] = policy
    elif policy is not None:
        raise InputError(f"policy = '{policy}': the figure '{name}' shows all policies")
    if chosen.of_a_window:
        if window is not None:
            check_window(result, window)
        given["window"] = window or busiest_window(result)
    elif window is not None:
        raise InputError(f"window = {window}: the figure '{name}' shows the whole run")
    return chosen.draw(result, **given)


def save_figures(result: ResultView, folder: Path) -> list[Path]:
    """Write the figures of all latencies, of fleets, and with replications that of means over time; return the paths.

    They are written to `folder` as PNG and SVG.
    """
    paths = save(latency_figure(result), folder, "latency_cdfs")
    if result.replicated:
        paths += save(over_time(result), folder, "means_over_time")
    if fleets_of(result):
        drawn = [name for name in OF_FLEETS if name != "prefix_hits" or has_prefix_hits(result)]
        paths += [path for name in drawn for path in save(OF_FLEETS[name](result), folder, name)]
    return paths
