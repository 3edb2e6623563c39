"""Measurements of the bench in a file, so that the report is the same until they are measured again."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from simqueue.errors import InputError
from simqueue.module08.bench import BenchPolicy, BenchRun
from studies.module08.calibrated import CallTime, call_times


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of the bench: its settings and the results of `bench`."""

    policy: BenchPolicy
    batch_size: int
    generated: int
    seconds: float
    calls: int

    @property
    def tokens_per_s(self) -> float:
        """Generated tokens per second."""
        return self.generated / self.seconds


@dataclass(frozen=True, slots=True)
class Measurements:
    """Runs of the bench on one machine, and the times of their calls by shape."""

    machine: str
    runs: tuple[Measured, ...]
    times: tuple[CallTime, ...]


def measurements(runs: Sequence[BenchRun], torch_version: str, device: str) -> Measurements:
    """Return the measurements of runs on this machine."""
    machine = f"torch {torch_version} on {device}, one thread, {platform.machine()}, Python {platform.python_version()}"
    measured = [Measured(run.policy, run.batch_size, run.generated, run.seconds, len(run.calls)) for run in runs]
    return Measurements(machine, tuple(measured), tuple(call_times(runs)))


def write(found: Measurements, path: Path) -> None:
    """Write measurements as JSON."""
    content = {
        "machine": found.machine,
        "runs": [asdict(run) for run in found.runs],
        "times": [asdict(time) for time in found.times],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8", newline="\n")


def read(path: Path) -> Measurements:
    """Read measurements from JSON.

    Raises
    ------
    InputError
        If the file cannot be read, or does not have the form that `write` gives it.
    """
    try:
        said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return Measurements(
            said["machine"],
            tuple(Measured(**run) for run in said["runs"]),
            tuple(CallTime(**time) for time in said["times"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a file of bench measurements: {' '.join(str(error).split())}") from error


def step_rows(times: Iterable[CallTime]) -> str:
    """Return the calls as CSV with the columns of ``simqueue calibrate --kind steps``."""
    lines = ["decode_seqs,context_tokens,prefill_seqs,prefill_tokens,past_tokens,ms"]
    for time in times:
        decodes = 0 if time.prefill_tokens else time.rows
        prefills = time.rows if time.prefill_tokens else 0
        lines.append(f"{decodes},{1 if decodes else 0},{prefills},{time.prefill_tokens},0,{1e3 * time.mean_s:.6g}")
    return "\n".join(lines) + "\n"
