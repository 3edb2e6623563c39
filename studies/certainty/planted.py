"""How often ``simqueue verify`` finds an error that was planted, by its rule and by the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from simqueue.experiment.matching import predict
from simqueue.experiment.runner import run
from simqueue.experiment.verification import CASES, DIFFERS, case_scenario, judge

ERRORS: Final = (0.0, 0.01, 0.02, 0.05, 0.10)
TRIES: Final = 1000
SEED: Final = 20

BEFORE: Final[Mapping[str, Sequence[float]]] = {
    "one-token-outputs": (0.0267, 0.0145, 0.0145),
    "shortest-prompt-first": (0.0213, 0.0131, 0.0131),
    "equal-prompts": (0.0254, 0.0152, 0.0152),
    "one-at-a-time": (0.0207, 0.0199, 0.0054),
    "geometric-outputs-alone": (0.0275, 0.0271, 0.0129),
    "two-slots": (0.0343, 0.0266, 0.0110),
    "eight-slots": (0.0480, 0.0186, 0.0089),
    "slots-for-all": (0.0021, 0.0022),
    "shared-decoding": (0.0134, 0.0129, 0.0279),
    "waves": (0.0057, 0.0031),
}
"""Half-widths of the 95 % intervals over the theory, in the order of the rows, that the earlier cases had with ten
replications and seed 1."""
_BEFORE_REPLICATIONS: Final = 10
_T: Final = 2.262


@dataclass(frozen=True, slots=True)
class Row:
    """One mean of one case.

    Attributes
    ----------
    case, metric : str
    theory : float
    error : float
        Largest error of the theory itself, as a share.
    values : tuple of float
        One per replication.
    """

    case: str
    metric: str
    theory: float
    error: float
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """How often errors are found in one row.

    Attributes
    ----------
    row : Row
    detectable : float
        What `verify` says that it can detect, as a share of the theory.
    now, before : tuple of float
        Share of the tries in which each of `ERRORS` is found.
    """

    row: Row
    detectable: float
    now: tuple[float, ...]
    before: tuple[float, ...]


def simulated() -> list[Row]:
    """Run the built-in cases as the command does."""
    rows = []
    for name in CASES:
        scenario = case_scenario(name).resolve()
        (policy,) = scenario.policies
        result = run(scenario, check=False)
        prediction = predict(scenario, policy)
        for metric, theory in prediction.values.items():
            values = tuple(float(row[metric] or 0.0) for row in result.replication_rows)
            rows.append(Row(name, metric, theory, prediction.error, values))
    return rows


def measured(rows: Sequence[Row]) -> list[Found]:
    """Plant errors in every row and count how often they are found.

    The values of the replications are moved so that their mean is the theory, drawn with replacement as often as there
    are replications, and multiplied by one plus the error.
    """
    rng = np.random.default_rng(SEED)
    found = []
    for row in rows:
        place = [one.metric for one in rows if one.case == row.case].index(row.metric)
        detectable, _ = judge(row.values, row.theory, rows=len(rows), error=row.error)
        now = tuple(_now(row, error, len(rows), rng) for error in ERRORS)
        before = tuple(_before(BEFORE[row.case][place], error, rng) for error in ERRORS)
        found.append(Found(row, detectable or 0.0, now, before))
    return found


def _now(row: Row, error: float, rows: int, rng: np.random.Generator) -> float:
    values = np.asarray(row.values)
    centred = values - values.mean() + row.theory
    drawn = rng.choice(centred, (TRIES, len(values))) * (1 + error)
    verdicts = [judge(one.tolist(), row.theory, rows=rows, error=row.error)[1] for one in drawn]
    return verdicts.count(DIFFERS) / TRIES


def _before(half_width: float, error: float, rng: np.random.Generator) -> float:
    """Return how often the earlier rule said DIFFERS: more than three half-widths and 2 % away, if below 3 %."""
    n = _BEFORE_REPLICATIONS
    drawn = (1 + error) * (1 + rng.normal(0, half_width / _T * n**0.5, (TRIES, n)))
    widths = _T * drawn.std(axis=1, ddof=1) / n**0.5
    away = np.abs(drawn.mean(axis=1) - 1)
    return float(np.mean((widths <= 0.03) & (away > np.maximum(3 * widths, 0.02))))
