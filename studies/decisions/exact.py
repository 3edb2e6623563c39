"""Problems whose capacity under a limit is known without a simulation, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

_STEP_S: Final = 0.1
"""Duration of a step: a request of n tokens keeps the only seat for n steps."""
_MEAN_OUTPUT: Final = 4.0
_PER_STEP: Final = 50
"""Points of the lattice on which waits are computed, per step."""


@dataclass(frozen=True, slots=True)
class OneSeat:
    """A queue of one seat, and the limit on its P90 of TTFT.

    Attributes
    ----------
    limit_ms : float
    step_s, mean_s : float
        Duration of a step, and of a request on average.
    """

    limit_ms: float
    step_s: float
    mean_s: float


@dataclass(frozen=True, slots=True)
class Problem:
    """A scenario, a limit, and the highest rate that keeps it.

    Attributes
    ----------
    name, title : str
    keys : dict
        The scenario.
    slo : tuple of str
    rate_rps : float
        The exact answer.
    how : str
        Where it is from.
    one_seat : OneSeat or None
        What the recursion of `studies.decisions.lindley` needs; None: it is no queue of one seat.
    """

    name: str
    title: str
    keys: dict[str, Any]
    slo: tuple[str, ...]
    rate_rps: float
    how: str
    one_seat: OneSeat | None = None


def problems() -> list[Problem]:
    """Return all problems with their answers."""
    return [_constant(), _geometric(), _stable()]


def _constant() -> Problem:
    limit_s = 0.35
    rate = _solved(lambda rate: constant_wait_above(rate, _STEP_S, limit_s - _STEP_S), 0.1, 9.5)
    return Problem(
        "constant",
        "one seat, every request one step of 100 ms: M/D/1, P90 of TTFT at most 350 ms",
        _keys({"distribution": "constant", "value": 1}, rate_rps=3.0, seats=1),
        ("p90_ttft_ms<=350",),
        rate,
        "Erlang's series for the wait of M/D/1",
        OneSeat(1000 * limit_s, _STEP_S, _STEP_S),
    )


def _geometric() -> Problem:
    limit_s = 2.0
    outputs = np.arange(1, 400)
    chances = (1 / _MEAN_OUTPUT) * (1 - 1 / _MEAN_OUTPUT) ** (outputs - 1)
    rate = _solved(lambda rate: lattice_wait_above(rate, chances, _STEP_S, limit_s - _STEP_S), 0.1, 2.3)
    return Problem(
        "geometric",
        "one seat, outputs geometric with a mean of 4 steps of 100 ms: M/G/1, P90 of TTFT at most 2 s",
        _keys({"distribution": "geometric", "mean": _MEAN_OUTPUT}, rate_rps=1.0, seats=1),
        ("p90_ttft_ms<=2000",),
        rate,
        "Pollaczek and Khinchine on a lattice, by the recursion for compound geometric sums",
        OneSeat(1000 * limit_s, _STEP_S, _MEAN_OUTPUT * _STEP_S),
    )


def _stable() -> Problem:
    seats, output = 8, 20.0
    return Problem(
        "stable",
        "8 seats, outputs geometric with a mean of 20 steps of 100 ms: mean TPOT never reaches 150 ms",
        _keys({"distribution": "geometric", "mean": output}, rate_rps=2.0, seats=seats),
        ("mean_tpot_ms<=150",),
        seats / (output * _STEP_S),
        "seats over the mean time of a request",
    )


def _keys(output: dict[str, Any], *, rate_rps: float, seats: int) -> dict[str, Any]:
    return {
        "step_time": {"kind": "constant", "seconds": _STEP_S},
        "kv_cache": {"blocks": 100_000},
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": rate_rps},
            "num_requests": 1000,
            "prompt_tokens": {"distribution": "constant", "value": 10},
            "output_tokens": output,
        },
        "policies": {"one": {"scheduler": "continuous", "max_num_seqs": seats}},
    }


def _solved(above: Callable[[float], float], low_rps: float, high_rps: float) -> float:
    """Return the rate at which a tenth of the requests exceeds the limit."""
    return float(brentq(lambda rate: above(rate) - 0.1, low_rps, high_rps, xtol=1e-9))


def constant_wait_above(rate_rps: float, service_s: float, wait_s: float) -> float:
    """Return P(wait > `wait_s`) in M/D/1: Erlang's series (Tijms, A First Course in Stochastic Models, section 9.2)."""
    load, steps = rate_rps * service_s, wait_s / service_s
    total, factorial = 0.0, 1.0
    for k in range(int(steps) + 1):
        factorial *= k or 1
        x = load * (k - steps)
        total += x**k / factorial * np.exp(-x)
    return float(1 - (1 - load) * total)


def lattice_wait_above(rate_rps: float, chances: NDArray[Any], step_s: float, wait_s: float) -> float:
    """Return P(wait > `wait_s`) in M/G/1, whose service is n steps with the chance `chances[n - 1]`.

    The wait is a geometric sum of equilibrium residual services (Pollaczek and Khinchine). Residuals are put on a
    lattice of `_PER_STEP` points per step, once rounded up and once down; the sum on a lattice follows from the
    recursion of Panjer. The mean of both is returned, with half of the mass at the last point.
    """
    mean_s = float(np.sum(chances * np.arange(1, len(chances) + 1))) * step_s
    load = rate_rps * mean_s
    number = round(wait_s / step_s * _PER_STEP)
    tail = np.concatenate([[1.0], 1 - np.cumsum(chances)])  # P(service > n steps)
    steps = np.minimum(np.arange(number + 1) // _PER_STEP, len(tail) - 1)
    cell = tail[steps] * (step_s / _PER_STEP) / mean_s
    ends = []
    for shift in (0, 1):
        residual = np.concatenate([np.zeros(shift), cell])[: number + 1]
        made = _geometric_sum(load, residual)
        ends.append(1 - float(np.sum(made)) + float(made[-1]) / 2)
    return (ends[0] + ends[1]) / 2


def _geometric_sum(load: float, parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distribution of a sum of a geometric number of parts, on the lattice of the parts."""
    made = np.zeros(len(parts))
    scale = 1 - load * parts[0]
    made[0] = (1 - load) / scale
    for k in range(1, len(parts)):
        made[k] = load * float(parts[1 : k + 1] @ made[k - 1 :: -1][:k]) / scale
    return made
