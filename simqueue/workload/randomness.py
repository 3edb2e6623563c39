"""Whether anything of a workload is random. If not, every replication is the same run."""

from __future__ import annotations

from pathlib import Path

from simqueue.errors import inside
from simqueue.workload.build import build_duration, build_lengths
from simqueue.workload.clients import SessionSettings
from simqueue.workload.request_lengths import Lengths
from simqueue.workload.settings import WorkloadSettings


def is_random(settings: WorkloadSettings, base_dir: Path) -> bool:
    """Return whether two replications of a workload can differ.

    Each source of requests and each rule of the clients says whether it draws; nothing is generated.

    Parameters
    ----------
    settings : WorkloadSettings
    base_dir : Path
        The folder that relative paths in the settings start from.

    Raises
    ------
    InputError
        If a length distribution cannot be built (see `build_lengths`).
    """
    drawing = (settings.retry, settings.system_prompt, settings.trace, settings.arrivals)
    if any(part is not None and part.is_random for part in drawing) or len(settings.classes or {}) > 1:
        return True
    if settings.users is not None and build_duration(settings.users.think_s).is_random:
        return True
    if settings.sessions is not None and _sessions_are_random(settings.sessions, base_dir):
        return True
    if settings.prompt_tokens is None:
        return False  # a trace or a list has lengths of its own
    lengths = Lengths.of(settings, base_dir)
    return lengths.prompt.is_random or lengths.output.is_random


def _sessions_are_random(keys: SessionSettings, base_dir: Path) -> bool:
    if keys.arrivals.is_random:
        return True
    with inside("sessions", "turns"):
        turns = build_lengths(keys.turns, base_dir)
    # think times come between turns: with a single turn there is none
    return turns.is_random or (turns.mean() > 1 and build_duration(keys.think_s).is_random)
