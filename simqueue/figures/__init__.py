"""Figures: functions that draw the tables of results, and what workloads and step times look like.

`cdf_axes` and `save_figures` are offered here and loaded when they are first used: matplotlib and seaborn are slow to
load, and a run without figures needs neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simqueue.figures.cdf import cdf_axes, save_figures

__all__ = ["cdf_axes", "save_figures"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module("simqueue.figures.cdf"), name)
