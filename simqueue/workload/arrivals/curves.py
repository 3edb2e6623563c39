"""Rate curves from files with the columns category, window_start_s, total_rate_rps."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simqueue.datafiles.csvtable import read_table
from simqueue.errors import InputError, naming
from simqueue.names import unknown
from simqueue.workload.arrivals.base import Floats
from simqueue.workload.arrivals.settings import CurveArrivalsSettings

CURVES = Path(__file__).parent.parent / "traces" / "data" / "servegen_rate_10min.csv"
"""The packaged curves: production rates summed over clients, from ServeGen (see the README beside the file)."""


def read_curve(settings: CurveArrivalsSettings, base_dir: Path) -> tuple[Floats, Floats]:
    """Return the part of a rate curve that the settings use.

    Parameters
    ----------
    settings : CurveArrivalsSettings
    base_dir : Path
        The folder that a relative path starts from.

    Returns
    -------
    ends_s, rates_rps : float64 arrays, shape (n,)
        Ends of the windows, counted from ``start_s``, and their rates.

    Raises
    ------
    InputError
        If the file is not such a table, has no such category, or has no arrivals in the used part.
    """
    file, label = (CURVES, "servegen curves") if settings.path is None else (base_dir / settings.path, settings.path)
    with naming("path"):
        starts_s, rates = _windows(file, label, settings.category)
    ends_s, rates = _cut(starts_s, rates, settings, label)
    mean = float(np.diff(ends_s, prepend=0.0) @ rates / ends_s[-1])
    if mean == 0:
        raise InputError(f"the rate of curve '{settings.category}' of {label} is 0 in the used part", "category")
    return ends_s, rates if settings.rate_rps is None else rates * (settings.rate_rps / mean)


def _windows(file: Path, label: str, category: str) -> tuple[Floats, Floats]:
    """Return the start of each window of a category in seconds, and its rate."""
    table = read_table(file, label)
    names = table.text("category")
    if category not in names:
        raise InputError(f"{label}: {unknown('curve', category, list(dict.fromkeys(names)))}", "category")
    mine = np.array([name == category for name in names])
    starts_s = np.array(table.floats("window_start_s", least=0))[mine]
    rates = np.array(table.floats("total_rate_rps", least=0))[mine]
    if len(starts_s) < 2 or not (np.diff(starts_s) > 0).all():
        text = f"{label}: category '{category}' needs two or more windows in order of window_start_s"
        raise InputError(text, "category")
    return starts_s, rates


def _cut(starts_s: Floats, rates: Floats, settings: CurveArrivalsSettings, label: str) -> tuple[Floats, Floats]:
    """Return ends and rates of the windows used, counted from start_s."""
    # The table has only the starts: the last window is as long as the one before it.
    ends_s = np.append(starts_s[1:], 2 * starts_s[-1] - starts_s[-2])
    end_s = ends_s[-1] if settings.end_s is None else settings.end_s
    if settings.start_s < starts_s[0] or end_s > ends_s[-1] or settings.start_s >= end_s:
        raise InputError(
            f"start_s {settings.start_s:g} to end_s {end_s:g} is not inside the curve '{settings.category}' of "
            f"{label}, which is from {starts_s[0]:g} to {ends_s[-1]:g} s",
            "end_s" if settings.start_s >= starts_s[0] and settings.end_s is not None else "start_s",
        )
    used = (ends_s > settings.start_s) & (starts_s < end_s)
    return np.minimum(ends_s[used], end_s) - settings.start_s, rates[used]
