"""What is kept of a result to compare later ones with it: its scenario, and the summary of each replication."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from simqueue.datafiles.text import read_json
from simqueue.errors import InputError
from simqueue.experiment.metric_names import NUMBERS, OF_ROWS
from simqueue.results.classes import ALL_CLASSES
from simqueue.results.replicated import missing_values
from simqueue.results.stored import StoredResult, read_result
from simqueue.results.summary import column_type
from simqueue.scenario import from_mapping
from simqueue.scenario.paths import with_contents
from simqueue.scenario.traffic import is_random_run
from simqueue.scenario.values import dotted, leaves
from simqueue.statistics.contrast import Known
from simqueue.sweeps.keys import content_digest

if TYPE_CHECKING:
    from simqueue.results.result import Result
    from simqueue.results.summary import Row

Values = Mapping[str, Mapping[str, tuple[float | None, ...]]]
Halves = Mapping[str, Mapping[str, float]]
_DEFAULT: Final = "default"
SCENARIO: Final = "scenario.json"
_HASH: Final = "\0sha256:"
"""Begins what stands for a file; no text of a scenario does."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A result, as far as it is compared with others.

    Attributes
    ----------
    label : str
        What it is called in messages.
    version : str
        Version of the package that made it.
    seed : int
    scenario : mapping
        Every value of the scenario, as JSON has them.
    base_dir : Path
        Where its relative paths start, an absolute path.
    confidence : float
        Nominal coverage of its intervals.
    random : bool
        Whether two replications can differ.
    values : mapping of str to mapping
        Policy -> column of the summary -> one value per replication, None where it is undefined.
    halves : mapping of str to mapping
        Of single runs: policy -> column -> half the interval by batch means, where there is one.
    contents : mapping of str to str
        Dotted key -> hash of the file that the scenario read there; of a saved result it is not known.
    defaults : frozenset of str
        Dotted keys whose values are plain defaults, as far as that is known.
    warnings : tuple of str
        Those of the result; a baseline file has none.
    """

    label: str
    version: str
    seed: int
    scenario: Mapping[str, Any]
    base_dir: Path
    confidence: float
    random: bool
    values: Values
    halves: Halves
    contents: Mapping[str, str] = field(default_factory=dict)
    defaults: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the policies, in order."""
        return tuple(self.values)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns that a policy has, in order."""
        return tuple(dict.fromkeys(name for columns in self.values.values() for name in columns))

    @property
    def replications(self) -> int:
        """The largest number of replications of a policy."""
        return max((len(found) for columns in self.values.values() for found in columns.values()), default=0)

    def known(self, policy: str, column: str) -> Known | None:
        """Return what is known of a column; None if it is undefined in some replication, or not there."""
        found = self.values.get(policy, {}).get(column, ())
        values = tuple(value for value in found if value is not None)
        if not values or len(values) < len(found):
            return None
        return Known(values, self.halves.get(policy, {}).get(column), exact=not self.random)


def recorded(source: Result | StoredResult | str | Path, label: str = "") -> Recorded:
    """Return what is kept of a result.

    Parameters
    ----------
    source : Result, or str or Path
        A result that was just computed, or the folder of a saved one.
    label : str
        What it is called in messages; by default the folder, or the name of the scenario.

    Raises
    ------
    InputError
        If the folder has no result, or a damaged one.
    """
    if isinstance(source, str | Path):
        folder = Path(source)
        result: Result | StoredResult = read_result(folder)
        scenario: Mapping[str, Any] = read_json(folder / SCENARIO)  # its paths start at the folder
        base_dir = folder.absolute()
    else:
        result, scenario, base_dir = source, source.scenario, getattr(source, "base_dir", Path()).absolute()
    return Recorded(
        label=label or (str(source) if isinstance(source, str | Path) else str(scenario.get("name", "result"))),
        version=result.version,
        seed=result.seed,
        scenario=scenario,
        base_dir=base_dir,
        confidence=result.confidence,
        random=_is_random(scenario, base_dir),
        values=_values(result.replication_rows),
        halves=_halves(result),
        contents={} if isinstance(result, StoredResult) else _contents(scenario, base_dir),
        defaults=frozenset(key for key, origin in result.origins.items() if origin == _DEFAULT),
        warnings=tuple(result.warnings),
    )


def _is_random(scenario: Mapping[str, Any], base_dir: Path) -> bool:
    """Return whether two replications of a scenario can differ; of one that cannot be made again, they can."""
    try:
        return is_random_run(from_mapping(scenario, base_dir=base_dir).resolve())
    except InputError:  # such as a scheduler or a trace that is not here
        return True


def _contents(scenario: Mapping[str, Any], base_dir: Path) -> dict[str, str]:
    """Return a hash of each file that a scenario reads, by its key; none of what is gone by now."""
    found: dict[str, str] = {}
    read = with_contents(scenario, base_dir, lambda path: f"{_HASH}{content_digest(path)}")
    for path in leaves(read):
        value: Any = read
        for step in path:
            value = value[step]
        if isinstance(value, str) and value.startswith(_HASH):
            found[dotted(path)] = value.removeprefix(_HASH)
    return found


def _values(rows: Iterable[Row]) -> Values:
    """Return the numbers in the rows of all requests; None for percentiles of too few values, as in tables."""
    found: dict[str, dict[str, list[float | None]]] = {}
    for row in rows:
        if row["request_class"] != ALL_CLASSES:
            continue
        columns = found.setdefault(str(row["policy"]), {})
        for name in filter(_is_number, row):
            value = row[name]
            is_known = isinstance(value, int | float) and not missing_values(row, name)
            columns.setdefault(name, []).append(value if is_known and isinstance(value, int | float) else None)
    return {policy: {name: tuple(own) for name, own in columns.items()} for policy, columns in found.items()}


def _is_number(name: str) -> bool:
    made_of_others = name.startswith(("ci_low_", "ci_high_", "effective_n_"))
    return column_type(name) in NUMBERS and name not in OF_ROWS and not made_of_others


def _halves(result: Result | StoredResult) -> Halves:
    """Return half the intervals of single runs; of replications there are better ones, of saved results none."""
    if result.replicated or isinstance(result, StoredResult):
        return {}
    halves: dict[str, dict[str, float]] = {}
    for one in result.one_run_intervals():
        if one.low is not None and one.high is not None:
            halves.setdefault(one.policy, {})[one.metric] = (one.high - one.low) / 2
    return halves
