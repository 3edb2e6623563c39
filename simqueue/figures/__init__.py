"""Figures: functions that draw the tables of results, workloads, step times and the capacity law.

The functions named here are loaded when they are first used. matplotlib and seaborn are slow to load, and most commands
can do without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simqueue.figures.canvas import write
    from simqueue.figures.capacity import capacity_figure
    from simqueue.figures.cdf import cdf_axes
    from simqueue.figures.plots import plot, save_figures
    from simqueue.figures.sensitivity import sensitivity_figure
    from simqueue.figures.sweep import SweepPoint, sweep_axes
    from simqueue.figures.workload import workload_figure

__all__ = [
    "SweepPoint",
    "capacity_figure",
    "cdf_axes",
    "plot",
    "save_figures",
    "sensitivity_figure",
    "sweep_axes",
    "workload_figure",
    "write",
]

_MODULES = {
    "SweepPoint": "sweep",
    "capacity_figure": "capacity",
    "cdf_axes": "cdf",
    "plot": "plots",
    "save_figures": "plots",
    "sensitivity_figure": "sensitivity",
    "sweep_axes": "sweep",
    "workload_figure": "workload",
    "write": "canvas",
}
"""Function -> module of this package. It is imported at first use."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
