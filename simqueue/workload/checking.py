"""Whether a workload can be had as it is asked for, found out without making it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from simqueue.errors import inside
from simqueue.workload.drawing import Draws, Lengths
from simqueue.workload.generate import generate
from simqueue.workload.settings import WorkloadSettings


def check(settings: WorkloadSettings, *, seed: int, base_dir: Path, name: str | None = None) -> None:
    """Raise what `generate` would raise in replication 0.

    Files are read. Arrivals are drawn only where nothing else can tell whether there are enough, and their lengths are
    not drawn at all: no length law can fail.

    Parameters
    ----------
    settings : WorkloadSettings
    seed : int
        Decides where arrivals have to be drawn.
    base_dir : Path
        The folder that relative paths in the settings start from.
    name : str, optional
        The workload's name where there are several.

    Raises
    ------
    InputError
        As `generate`.
    """
    if settings.arrivals is None:
        generate(settings, seed=seed, base_dir=base_dir, name=name)
        return
    with inside("arrivals"):
        settings.arrivals.resolved(base_dir).check(
            partial(Draws.of(seed, 0, name).rng, "arrivals"),
            num_requests=settings.num_requests,
            until_s=settings.arrivals_for_s,
        )
    Lengths.of(settings, base_dir)
