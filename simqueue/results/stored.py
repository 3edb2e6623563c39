"""Reads a result from the folder to which it was saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from simqueue.datafiles.limits import MOST_TRACE_BYTES
from simqueue.datafiles.text import check_file, read_json
from simqueue.errors import InputError
from simqueue.outputs.place import PARTIAL
from simqueue.results import fleettables
from simqueue.results.display import Displayed
from simqueue.results.store import GAP_TYPES, GAPS, MARKER
from simqueue.statistics.intervals import CONFIDENCE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from simqueue.results.summary import Row


@dataclass(frozen=True, repr=False)
class StoredResult(Displayed):
    """A result read from its folder; `simqueue.figures.view.ResultView` says what its parts are.

    It has the tables, the summary and the figures of a `Result`. Its runs
    are not stored, so that it cannot be saved or exported again.
    """

    scenario: Mapping[str, Any]
    origins: Mapping[str, str]
    version: str
    seed: int
    requests: pd.DataFrame
    steps: pd.DataFrame
    gaps: pd.DataFrame
    replicas: pd.DataFrame
    lives: pd.DataFrame
    stays: pd.DataFrame
    summary_rows: tuple[Row, ...]
    replication_rows: tuple[Row, ...]
    group_rows: tuple[Row, ...]
    warnings: tuple[str, ...]
    slo: Mapping[str, float]
    class_slo: Mapping[str, Mapping[str, float]]

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the policies, in order."""
        return tuple(dict.fromkeys(str(row["policy"]) for row in self.summary_rows))

    @property
    def blocks_total(self) -> None:
        """Not stored."""

    def gap_curve(self, policy: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the distribution of the time between tokens; empty without gaps or in results of older versions."""
        own = self.gaps[self.gaps["policy"] == policy]
        return own["itl_ms"].to_numpy(), own["share"].to_numpy()

    def last_token_s(self, policy: str) -> None:
        """Return None: it is not stored."""

    @property
    def warmup_s(self) -> float:
        """Requests that arrive before this time are not measured."""
        found = self.summary_rows[0].get("warmup_s") if self.summary_rows else None
        return float(found) if isinstance(found, int | float) else 0.0

    @property
    def replicated(self) -> bool:
        """Whether any policy ran more than once."""
        return any(isinstance(n := row.get("replications"), int) and n > 1 for row in self.summary_rows)

    @property
    def confidence(self) -> float:
        """Nominal coverage of the intervals."""
        return float((self.scenario.get("precision") or {}).get("confidence", CONFIDENCE))


def read_result(folder: str | Path) -> StoredResult:
    """Read a result that `Result.save`, or ``simqueue run``, wrote to a folder.

    Raises
    ------
    InputError
        If the folder contains no result, or if a file is missing or damaged.
    """
    folder = Path(folder)
    if (folder / PARTIAL).is_file():
        raise InputError(f"{folder}: is not complete: it was left by a run that was stopped, or that has not ended")
    if not (folder / MARKER).is_file():
        raise InputError(f"{folder}: contains no result of simqueue ({MARKER} is missing)")
    try:
        said = read_json(folder / "summary.json")
        for table in ("requests.parquet", "steps.parquet"):
            check_file(folder / table, table, MOST_TRACE_BYTES)
        return StoredResult(
            scenario=said["scenario"],
            origins=said.get("origins", {}),
            version=said["version"],
            seed=said["seed"],
            requests=pd.read_parquet(folder / "requests.parquet"),
            steps=pd.read_parquet(folder / "steps.parquet"),
            gaps=_gaps(folder / GAPS),
            **{name: _of_fleet(folder / f"{name}.csv", types) for name, types in fleettables.TABLES.items()},
            summary_rows=tuple(said["summary"]),
            replication_rows=tuple(said.get("replications", said["summary"])),
            group_rows=tuple(said.get("groups", ())),
            warnings=tuple(said["warnings"]),
            slo=said["slo"] if "slo" in said else _scenario_slo(said["scenario"]),
            class_slo=said.get("class_slo", {}),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder}: the result cannot be read: {' '.join(str(error).split())}") from error


def _of_fleet(file: Path, types: Mapping[str, Any]) -> pd.DataFrame:
    """Return a table of fleets; without rows if there are none, or if a version did not save it."""
    if file.exists():
        read = {name: "string" if kind == "float64" else kind for name, kind in types.items()}
        return pd.read_csv(file, dtype=read).astype(dict(types))  # pandas' own reader of numbers is not exact
    return fleettables.typed({name: [] for name in types}, types)


def _gaps(file: Path) -> pd.DataFrame:
    """Return the distribution of the time between tokens; without rows if a version did not save it."""
    if file.exists():
        return pd.read_parquet(file)
    return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in GAP_TYPES.items()})


def _scenario_slo(scenario: Mapping[str, Any]) -> Mapping[str, float]:
    """Return the limits of the scenario, for a result of a version that did not save those of the run."""
    return {name: limit for name, limit in (scenario.get("slo") or {}).items() if limit is not None}
