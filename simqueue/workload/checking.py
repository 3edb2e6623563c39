"""Checks that a workload can be generated, without generating it, and without numpy if its keys alone can tell."""

from __future__ import annotations

from pathlib import Path

from simqueue.errors import inside
from simqueue.workload.limits import most_arrivals
from simqueue.workload.settings import WorkloadSettings


def check(settings: WorkloadSettings, *, seed: int, base_dir: Path, name: str | None = None) -> None:
    """Raise what `generate` would raise in replication 0.

    Files are read. Arrivals are drawn only if there is no other way to know whether there are enough. Lengths are not
    drawn: a length distribution that can be built cannot fail.

    Parameters
    ----------
    settings : WorkloadSettings
    seed : int
        Used if arrivals have to be drawn.
    base_dir : Path
        The folder that relative paths in the settings start from.
    name : str, optional
        The workload's name if there are several.

    Raises
    ------
    InputError
        As `simqueue.workload.generate.generate`.
    """
    if settings.requests is not None:
        return
    lengths = (settings.prompt_tokens, settings.output_tokens)
    rate_rps = None if settings.arrivals is None else settings.arrivals.plain_rate_rps
    if rate_rps is not None and all(found is not None and found.always_possible for found in lengths):
        with inside("arrivals"):
            most_arrivals(rate_rps, settings.num_requests, settings.arrivals_for_s)
        return
    if settings.trace is not None:
        from simqueue.workload.traces.traffic import check_trace  # noqa: PLC0415 - numpy: the keys alone cannot tell

        check_trace(settings, seed=seed, base_dir=base_dir, name=name)
    else:
        from simqueue.workload.generate import check_random  # noqa: PLC0415 - numpy and scipy: same

        check_random(settings, seed=seed, base_dir=base_dir, name=name)
