"""Writes a result to a folder: completely or not at all, and with the same bytes for the same result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from simqueue import figures
from simqueue.outputs import Place, reserved_folder
from simqueue.outputs.earlier import write_marker
from simqueue.results import fleettables
from simqueue.scenario.paths import moved

if TYPE_CHECKING:
    from simqueue.results.result import Result

MARKER: Final = "simqueue-result.json"
GAPS: Final = "itl.parquet"
MEANS: Final = "means_over_time.csv"
GAP_TYPES: Final = {"policy": "string", "itl_ms": "float64", "share": "float64"}


def save(result: Result, directory: str | Path | Place, *, draw: bool) -> list[Path]:
    """Write `result` to `directory` and return the paths of its files.

    The files are requests.parquet, steps.parquet, itl.parquet, summary.csv, replications.csv and means_over_time.csv
    (with replications), summary.json (the summary with scenario, version, seed, warnings and latency limits),
    scenario.json (the resolved scenario, which can be run again), and figures/ as PNG and SVG. A marker file (`MARKER`)
    lists them. With fleets there are replicas.csv, lives.csv and stays.csv. No file contains a date.

    The target can be missing, an empty folder, or an earlier result, which is replaced.

    Parameters
    ----------
    result : Result
    directory : str, Path or Place
        A folder, or one that is reserved already.
    draw : bool
        Whether to draw the figures.

    Raises
    ------
    InputError
        If the target is a file, contains other files, cannot be created, or is being written by another process.
    RunError
        If writing fails; the target is then unchanged.
    """
    with reserved_folder(directory, MARKER) as place:
        with place.writing() as folder:
            names = _write(result, folder, place.target, draw=draw)
            write_marker(folder, MARKER, result.version, names)
        return [place.path / name for name in names]


def _write(result: Result, folder: Path, target: Path, *, draw: bool) -> list[str]:
    folder.mkdir()
    (folder / "requests.parquet").write_bytes(_parquet(result.requests))
    (folder / "steps.parquet").write_bytes(_parquet(result.steps))
    (folder / GAPS).write_bytes(_parquet(_gaps(result)))
    result.summary.to_csv(folder / "summary.csv", index=False, lineterminator="\n")
    limits = {"slo": result.slo, "class_slo": result.class_slo}
    _write_json(folder / "summary.json", json.loads(result.to_json(requests=False)) | limits)
    _write_json(folder / "scenario.json", moved(result.scenario, result.base_dir.absolute(), target))
    names = ["requests.parquet", "steps.parquet", GAPS, "summary.csv", "summary.json", "scenario.json"]
    if result.replicated:
        result.replications.to_csv(folder / "replications.csv", index=False, lineterminator="\n")
        result.means_over_time().to_csv(folder / MEANS, index=False, lineterminator="\n")
        names += ["replications.csv", MEANS]
    if result.group_rows:
        for name in fleettables.TABLES:
            getattr(result, name).to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
            names.append(f"{name}.csv")
    if draw:
        drawn = figures.save_figures(result, folder / "figures")
        names += [path.relative_to(folder).as_posix() for path in drawn]
    return names


def _parquet(table: pd.DataFrame) -> bytes:
    """Return a table as a Parquet file. It is made in memory: a writer to a full disk complains when it is deleted."""
    content: bytes = table.to_parquet(None, index=False, compression="zstd")
    return content


def _gaps(result: Result) -> pd.DataFrame:
    """Return the distribution of the time between tokens of each policy."""
    curves = [(policy, *result.gap_curve(policy)) for policy in result.policies]
    parts = [pd.DataFrame({"policy": name, "itl_ms": values, "share": shares}) for name, values, shares in curves]
    made = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(GAP_TYPES))
    return made.astype(GAP_TYPES)


def _write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, indent=2)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")
