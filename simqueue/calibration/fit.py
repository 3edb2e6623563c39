"""Fits the values of a calibrated roofline to measured durations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from simqueue.calibration.case import Case, ServedCase
from simqueue.errors import InputError
from simqueue.frontend import FrontEndSettings
from simqueue.names import unknown
from simqueue.steptime import Coefficients, StepTime
from simqueue.steptime.calibrated import CalibratedStepTime

Vector = NDArray[np.float64]
Loose = tuple[str, str]

BOUNDS: Final[Mapping[str, tuple[float, float]]] = {
    "bandwidth_share": (0.2, 1.0),
    "mfu": (0.1, 1.0),
    "fp8_mfu": (0.1, 1.0),
    "overlap_exponent": (1.0, 20.0),
    "kv_bandwidth_share": (0.1, 1.0),
    "mixed_kv_bandwidth_share": (0.05, 1.0),
    "reread_gb": (1.0, 1e5),
    "attention_mfu": (0.05, 1.0),
    "walk_ns": (0.0, 200.0),
    "expert_bandwidth_share": (0.1, 1.0),
    "expert_mfu": (0.02, 1.0),
    "expert_overlap_exponent": (1.0, 20.0),
    "expert_layer_us": (0.0, 500.0),
    "routing_correlation": (0.0, 0.9),
    "layer_us": (0.0, 500.0),
    "prefill_layer_us": (0.0, 500.0),
    "seq_us": (0.0, 500.0),
    "allreduce_us": (0.0, 100.0),
    "link_share": (0.05, 1.0),
    "host_ms": (0.0, 200.0),
    "host_seq_us": (0.0, 2000.0),
    "step_ms": (0.0, 50.0),
    "first_token_ms": (0.0, 500.0),
    "first_token_us": (0.0, 500.0),
}
"""Lower and upper bound of each coefficient in a fit."""

START: Final[Mapping[str, float]] = {
    "bandwidth_share": 0.85,
    "mfu": 0.75,
    "fp8_mfu": 0.6,
    "overlap_exponent": 3.0,
    "kv_bandwidth_share": 0.85,
    "mixed_kv_bandwidth_share": 0.6,
    "reread_gb": 1000.0,
    "attention_mfu": 0.6,
    "walk_ns": 10.0,
    "expert_bandwidth_share": 0.85,
    "expert_mfu": 0.5,
    "expert_overlap_exponent": 1.2,
    "expert_layer_us": 30.0,
    "routing_correlation": 0.05,
    "layer_us": 30.0,
    "prefill_layer_us": 20.0,
    "seq_us": 5.0,
    "allreduce_us": 5.0,
    "link_share": 0.7,
    "host_ms": 5.0,
    "host_seq_us": 50.0,
    "step_ms": 0.5,
    "first_token_ms": 10.0,
    "first_token_us": 5.0,
}
"""Start of the search."""

FRONT_END: Final = ("first_token_ms", "first_token_us")
"""The values that are those of a front end and not of a step: they add to TTFT, whatever the steps take."""

NOISE: Final = 0.03
"""Relative errors well above this are weighted linearly instead of by their square, to limit outliers."""

LOOSE: Final = 0.5
"""A value is reported as not identified if its standard error is above this share of the value."""

TIED: Final = 0.9
"""Correlation of two estimates above which they are reported together."""

FLAT: Final = 1e-8
"""Relative size below which a change of the errors is rounding."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The result of a fit.

    Attributes
    ----------
    coefficients : Coefficients
        All values of steps, fitted and given.
    free : tuple of str
        Names of the fitted values.
    standard_errors : mapping of str to float
        Standard errors of the fitted values, from the curvature at the optimum; infinite if no row depends on it.
    not_identified : mapping of str to str
        Fitted values that the data does not determine, with the reason.
    predicted_s : array, one value per case
        Predicted durations.
    front_end : FrontEndSettings or None
        All values of the front end, fitted and given; None if there are none.
    """

    coefficients: Coefficients
    free: tuple[str, ...]
    standard_errors: Mapping[str, float]
    not_identified: Mapping[str, str]
    predicted_s: Vector
    front_end: FrontEndSettings | None = None


def fit(
    cases: Sequence[Case],
    free: Sequence[str],
    fixed: Mapping[str, float | None] | None = None,
    start: Mapping[str, float] | None = None,
) -> Fit:
    """Fit the coefficients `free` to measured durations; the others are `fixed` or have their defaults.

    Minimises a soft-L1 loss of relative errors within `BOUNDS` (scipy's trust-region reflective least squares).

    Raises
    ------
    InputError
        If there are fewer cases than coefficients to fit, or a coefficient is unknown.
    """
    _check_determined(cases, free, fixed)
    measured = np.array([case.measured_s for case in cases])
    low, high = (np.array([BOUNDS[name][end] for name in free]) for end in (0, 1))
    scale = np.array([{**START, **(start or {})}[name] for name in free])
    first = np.clip(scale, low + 1e-6 * (high - low), high - 1e-6 * (high - low))

    def errors(values: Vector) -> Vector:
        chosen = coefficients(dict(fixed or {}), free, values)
        relative: Vector = predict(cases, chosen, _front_end(fixed or {}, free, values)) / measured - 1
        return relative

    found = least_squares(
        errors, first, bounds=(low, high), loss="soft_l1", f_scale=NOISE, x_scale=np.maximum(scale, 1e-3), max_nfev=200
    )
    final = coefficients(dict(fixed or {}), free, found.x)
    seen = found.jac.any(axis=0)
    covariance = _covariance(found.jac, found.cost, found.x)
    spread = np.where(seen, np.sqrt(np.diag(covariance)) * found.x, np.inf)
    loose = dict(_not_identified(free, found.x, covariance, seen))
    front_end = _front_end(fixed or {}, free, found.x)
    errors_of = dict(zip(free, map(float, spread), strict=True))
    return Fit(final, tuple(free), errors_of, loose, predict(cases, final, front_end), front_end)


def _check_determined(cases: Sequence[Case], free: Sequence[str], fixed: Mapping[str, float | None] | None) -> None:
    """Check that all values to fit exist and that there are enough rows for them."""
    for name in free:
        if name not in BOUNDS:
            raise InputError(f"calibrate: {unknown('coefficient', name, BOUNDS)}")
    if not cases:
        raise InputError("calibrate: there are no rows to fit to")
    if len(cases) < len(free):
        raise InputError(
            f"calibrate: {len(cases)} rows cannot determine {len(free)} values ({', '.join(free)}); "
            f"fit at most {len(cases)} with --free"
            + ("" if fixed else " and take the others from a preset with --base")
        )


def coefficients(fixed: Mapping[str, float | None], free: Sequence[str], values: Vector) -> Coefficients:
    """Return the coefficients with `values` for the names in `free`; missing shares are 1."""
    chosen = {"bandwidth_share": 1.0, "mfu": 1.0, **fixed, **_named(free, values)}
    return Coefficients.model_validate({name: value for name, value in chosen.items() if name not in FRONT_END})


def _front_end(fixed: Mapping[str, float | None], free: Sequence[str], values: Vector) -> FrontEndSettings | None:
    chosen = {name: value for name, value in {**fixed, **_named(free, values)}.items() if name in FRONT_END}
    return FrontEndSettings.model_validate(chosen) if chosen else None


def _named(free: Sequence[str], values: Vector) -> dict[str, float]:
    return dict(zip(free, map(float, values), strict=True))


def predict(cases: Sequence[Case], chosen: Coefficients, front_end: FrontEndSettings | None = None) -> Vector:
    """Return the predicted duration of each case in seconds; a front end adds to means of TTFT."""
    times = price(cases, lambda case: step_time_of(case, chosen))
    delays = None if front_end is None else front_end.times()
    if delays is None:
        return times
    prompts = [getattr(case, "prompt_tokens", None) for case in cases]
    added_s: Vector = np.array([0.0 if tokens is None else delays.delay_s(tokens) for tokens in prompts])
    return times + added_s


def step_time_of(case: Case, chosen: Coefficients) -> CalibratedStepTime:
    """Return the calibrated step time of the deployment of a case."""
    deployment = (case.model, case.gpu, case.tensor_parallel)
    return CalibratedStepTime.of(*deployment, chosen, expert_parallel=case.expert_parallel)


def price(cases: Sequence[Case], made_for: Callable[[Case], StepTime]) -> Vector:
    """Return the duration of each case in seconds, with a step-time model for each deployment."""
    known: dict[tuple[int, int, int, bool], StepTime] = {}
    times = np.empty(len(cases))
    for i, case in enumerate(cases):
        key = (id(case.model), id(case.gpu), case.tensor_parallel, case.expert_parallel)
        if key not in known:
            known[key] = made_for(case)
        seconds = known[key].seconds
        if isinstance(case, ServedCase):
            times[i] = sum(w * seconds(b) for b, w in zip(case.batches, case.weights, strict=True))
        else:
            times[i] = seconds(case.batch)
    return times


def _covariance(jacobian: Vector, cost: float, values: Vector) -> Vector:
    """Return the covariance of the relative values; directions that change no error have a very large variance.

    `jacobian` and `cost` are those of the loss, in which outliers count less. Columns that no row depends on are zero.
    """
    rows, columns = jacobian.shape
    variance = 2 * cost / max(1, rows - columns)
    _, sizes, directions = np.linalg.svd(jacobian * values, full_matrices=False)
    floored = np.maximum(sizes, FLAT * sizes.max(initial=0.0) + np.finfo(float).tiny)
    covariance: Vector = (directions.T * (max(variance, FLAT) / floored**2)) @ directions
    return covariance


def _not_identified(
    free: Sequence[str], values: Vector, covariance: Vector, seen: NDArray[np.bool_]
) -> Iterator[Loose]:
    """Yield values that no row depends on, values at a bound, and values with a large standard error."""
    relative = np.sqrt(np.diag(covariance))
    for i, name in enumerate(free):
        low, high = BOUNDS[name]
        near = 1e-3 * (high - low)
        if not seen[i]:
            yield name, "no row depends on it"
        elif values[i] - low < near:
            yield name, f"at its lower bound, {low:g}"
        elif high - values[i] < near:
            yield name, f"at its upper bound, {high:g}"
        elif relative[i] > LOOSE:
            partner = _partner(i, covariance, relative, seen)
            told = "" if partner is None else f"; hard to separate from {free[partner]}"
            yield name, f"{values[i]:.3g} with a standard error of {_error(relative[i] * values[i])}{told}"


def _partner(i: int, covariance: Vector, relative: Vector, seen: NDArray[np.bool_]) -> int | None:
    """Return the value with the largest correlation with value `i`, if it is above `TIED`."""
    correlations = np.abs(covariance[i]) / np.maximum(relative[i] * relative, np.finfo(float).tiny)
    correlations[i], correlations[~seen] = 0.0, 0.0
    best = int(np.argmax(correlations))
    return best if correlations[best] > TIED else None


def _error(value: float) -> str:
    return f"{value:.2g}" if value < 1e6 else "any size"
