"""Writes a result to a folder: completely or not at all, and with the same bytes for the same result."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from simqueue import figures
from simqueue.datafiles.text import read_json
from simqueue.errors import InputError, RunError
from simqueue.scenario.paths import moved

if TYPE_CHECKING:
    from simqueue.results.result import Result

MARKER: Final = "simqueue-result.json"


def save(result: Result, directory: Path, *, draw: bool) -> list[Path]:
    """Write `result` to `directory` and return the paths of its files.

    The files are requests.parquet, steps.parquet, summary.csv, replications.csv (with several replications),
    summary.json (the summary with scenario, version, seed, warnings and latency limits), scenario.json (the resolved
    scenario, which can be run again), and figures/ as PNG and SVG. A marker file (`MARKER`) lists them. All files are
    written to a temporary folder next to the target, which is renamed at the end. No file contains a date.

    The target can be missing, an empty folder, or an earlier result, which is replaced.

    Parameters
    ----------
    result : Result
    directory : Path
    draw : bool
        Whether to draw the figures.

    Raises
    ------
    InputError
        If the target is a file, contains other files, or cannot be created.
    RunError
        If writing fails; the target is then unchanged.
    """
    target = directory.resolve()
    _check_replaceable(target, directory)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        holder = tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-")
    except OSError as error:
        raise InputError(f"{directory}: cannot be created: {error.strerror}") from error
    with holder as held:
        staged = Path(held, "new")
        try:
            names = _write(result, staged, target, draw=draw)
            _swap(staged, target, Path(held, "old"))
        except OSError as error:
            raise RunError(f"{directory}: results could not be written: {error.strerror}") from error
    return [directory / name for name in names]


def _check_replaceable(target: Path, shown: Path) -> None:
    """Raise `InputError` if the target contains anything but an earlier result."""
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"{shown}: is a file; must be a new folder or an earlier result of simqueue")
    there = sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if not path.is_dir())
    if not there:
        return
    written = _listed(target / MARKER)
    if written is None:
        raise InputError(f"{shown}: contains files that are no result of simqueue, such as {there[0]}; choose another")
    foreign = [name for name in there if name not in written]
    if foreign:
        raise InputError(
            f"{shown}: {foreign[0]} is not part of the earlier result; move it away or choose another folder"
        )


def _listed(marker: Path) -> list[str] | None:
    """Return the files that a marker lists, including the marker; None if the file is not a marker."""
    try:
        return [MARKER, *map(str, read_json(marker)["files"])]
    except (InputError, KeyError, TypeError):
        return None


def _write(result: Result, folder: Path, target: Path, *, draw: bool) -> list[str]:
    folder.mkdir()
    result.requests.to_parquet(folder / "requests.parquet", index=False, compression="zstd")
    result.steps.to_parquet(folder / "steps.parquet", index=False, compression="zstd")
    result.summary.to_csv(folder / "summary.csv", index=False, lineterminator="\n")
    limits = {"slo": result.slo, "class_slo": result.class_slo}
    _write_text(folder / "summary.json", _json(json.loads(result.to_json(requests=False)) | limits))
    _write_text(folder / "scenario.json", _json(moved(result.scenario, result.base_dir.absolute(), target)))
    names = ["requests.parquet", "steps.parquet", "summary.csv", "summary.json", "scenario.json"]
    if result.replicated:
        result.replications.to_csv(folder / "replications.csv", index=False, lineterminator="\n")
        names.append("replications.csv")
    if draw:
        drawn = figures.save_figures(result, folder / "figures")
        names += [path.relative_to(folder).as_posix() for path in drawn]
    _write_text(folder / MARKER, _json({"version": result.version, "files": names}))
    return names


def _json(content: Any) -> str:
    return json.dumps(content, allow_nan=False, ensure_ascii=False, indent=2)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def _swap(staged: Path, target: Path, old: Path) -> None:
    """Rename `staged` to `target`; if that fails, `target` is as before."""
    if not target.exists():
        staged.rename(target)
        return
    target.rename(old)
    try:
        staged.rename(target)
    except OSError:
        old.rename(target)
        raise
