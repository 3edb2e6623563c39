"""Designs and indices of global sensitivity analysis, by SALib: Morris' elementary effects and Sobol's variances.

Inputs are shares of their ranges, from 0 to 1. So an effect of Morris is the change of the output over the whole range
of an input, if it went on as it does from one point to the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from simqueue.errors import InputError, show
from simqueue.names import unknown
from simqueue.statistics.intervals import CONFIDENCE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Method = Literal["morris", "sobol"]
METHODS: Final = ("morris", "sobol")
POINTS: Final = {"morris": 20, "sobol": 128}
"""Trajectories of Morris, and base points of Sobol, by default."""
_LEVELS: Final = 4
_RESAMPLES: Final = 1000


@dataclass(frozen=True, slots=True)
class Index:
    """An index of one input, with its 95 % interval by the bootstrap.

    Attributes
    ----------
    name : str
        ``mu_star``, ``mu`` and ``sigma`` of Morris; ``S1`` and ``ST`` of Sobol.
    value, low, high : float or None
        None if the output does not vary, so that no share of its variance is defined.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None


def check_screening(method: str, points: int) -> None:
    """Raise `InputError` unless there is such a method, with such a number of points."""
    if method not in METHODS:
        raise InputError(f"method: {unknown('method', method, METHODS)}")
    if isinstance(points, bool) or not isinstance(points, int) or not 2 <= points <= 100_000:
        raise InputError(f"points = {show(points)}: must be a whole number from 2 to 100,000")
    if method == "sobol" and points & (points - 1):
        lower = 1 << (points.bit_length() - 1)
        raise InputError(f"points = {points}: must be a power of 2 with sobol, such as {lower} or {2 * lower}")
    _salib("sample", method)


def shares_of(method: Method, inputs: int, points: int, seed: int) -> Floats:
    """Return the points at which the output is needed: one row each, with a share of the range of each input.

    Parameters
    ----------
    method : str
    inputs : int
        How many there are.
    points : int
        Trajectories of Morris, each with `inputs` + 1 points; base points of Sobol, each with `inputs` + 2.
    seed : int

    Raises
    ------
    InputError
        If SALib is not installed.
    """
    generator = np.random.default_rng(seed)
    sample = _salib("sample", method).sample
    if method == "morris":
        made = sample(_problem(inputs), points, num_levels=_LEVELS, seed=generator)
    else:
        made = sample(_problem(inputs), points, calc_second_order=False, seed=generator)
    return np.asarray(made, dtype=np.float64)


def indices(method: Method, shares: Floats, outputs: Sequence[float], seed: int) -> list[tuple[Index, ...]]:
    """Return the indices of each input.

    Parameters
    ----------
    method : str
    shares : array of shape (n_points, n_inputs)
        As returned by `shares_of`.
    outputs : sequence of float
        One per point.
    seed : int
        Of the bootstrap.
    """
    values = np.asarray(outputs, dtype=np.float64)
    return _of_morris(shares, values, seed) if method == "morris" else _of_sobol(shares, values, seed)


def _of_morris(shares: Floats, values: Floats, seed: int) -> list[tuple[Index, ...]]:
    inputs = shares.shape[1]
    analyze = _salib("analyze", "morris").analyze
    found = analyze(
        _problem(inputs), shares, values, num_levels=_LEVELS, num_resamples=_RESAMPLES, conf_level=CONFIDENCE, seed=seed
    )
    effects = _elementary_effects(shares, values)
    again = np.random.default_rng(seed).integers(0, len(effects), (_RESAMPLES, len(effects)))
    made = list[tuple[Index, ...]]()
    for number in range(inputs):
        resampled = effects[again, number]
        half = float(found["mu_star_conf"][number])
        mu_star = float(found["mu_star"][number])
        made.append(
            (
                Index("mu_star", mu_star, max(0.0, mu_star - half), mu_star + half),
                _around("mu", float(found["mu"][number]), resampled.mean(axis=1)),
                _around("sigma", float(found["sigma"][number]), resampled.std(axis=1, ddof=1), least=0.0),
            )
        )
    return made


def _of_sobol(shares: Floats, values: Floats, seed: int) -> list[tuple[Index, ...]]:
    inputs = shares.shape[1]
    if np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())):
        return [tuple(Index(name, None, None, None) for name in ("S1", "ST"))] * inputs
    analyze = _salib("analyze", "sobol").analyze
    found = analyze(
        _problem(inputs),
        values,
        calc_second_order=False,
        num_resamples=_RESAMPLES,
        conf_level=CONFIDENCE,
        seed=seed,
    )
    return [tuple(_sobol(found, name, number) for name in ("S1", "ST")) for number in range(inputs)]


def _sobol(found: Any, name: str, number: int) -> Index:
    value, half = float(found[name][number]), float(found[f"{name}_conf"][number])
    return Index(name, value, value - half, value + half)


def _elementary_effects(shares: Floats, values: Floats) -> Floats:
    """Return the effect of each input in each trajectory, per unit of its share."""
    inputs = shares.shape[1]
    paths, outputs = shares.reshape(-1, inputs + 1, inputs), values.reshape(-1, inputs + 1)
    steps, changes = np.diff(paths, axis=1), np.diff(outputs, axis=1)
    moved = np.abs(steps).argmax(axis=2)  # each step changes one input
    effects = np.empty((len(paths), inputs))
    sizes = np.take_along_axis(steps, moved[:, :, None], axis=2)[:, :, 0]
    np.put_along_axis(effects, moved, changes / sizes, axis=1)
    return effects


def _around(name: str, value: float, resampled: Floats, least: float = -math.inf) -> Index:
    """Return an index with its normal interval by the bootstrap."""
    half = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * float(resampled.std(ddof=1))
    return Index(name, value, max(least, value - half), value + half)


def _problem(inputs: int) -> dict[str, Any]:
    names = [f"x{number}" for number in range(inputs)]
    return {"num_vars": inputs, "names": names, "bounds": [[0.0, 1.0]] * inputs}


def _salib(part: str, method: str) -> Any:
    """Return a module of SALib, which is loaded at first use."""
    from importlib import import_module  # noqa: PLC0415 - with what it imports

    try:
        return import_module(f"SALib.{part}.{method}")
    except ImportError:
        raise InputError(f"method = {method}: needs SALib: pip install 'simqueue[decide]'") from None
