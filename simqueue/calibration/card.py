"""Writes a fit as a preset file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simqueue.calibration.case import Case, ServedCase
from simqueue.calibration.errors import ErrorRow
from simqueue.calibration.fit import FRONT_END, Fit
from simqueue.frontend import FrontEndSettings
from simqueue.steptime import Batch, Coefficients
from simqueue.steptime.validity import expert_layout, served_as

_DIGITS = 4
_NEXT_TO_ZERO = 1e-6
"""Values below this are written as 0: the search ends near a bound and not on it, and no value matters below this."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The text of a preset file besides its numbers.

    Attributes
    ----------
    description, gpu, engine, fitted_on : str
        Purpose, measured GPU, measured engine, data.
    async_scheduling : bool or None
        Whether the engine planned the next step while one ran; None: not known.
    version : int
        Increases when a value changes.
    given : mapping of str to (value, source)
        Coefficients that were not fitted, with their sources.
    kernels : bool
        Whether the kernels alone were measured.
    server : mapping of str to value
        What is known of the measured server; the keys of `MeasuredServer`.
    """

    description: str
    gpu: str
    engine: str
    fitted_on: str
    async_scheduling: bool | None = None
    version: int = 1
    given: Mapping[str, tuple[float | None, str]] = field(default_factory=dict)
    kernels: bool = False
    server: Mapping[str, Any] = field(default_factory=dict)


def rounded(fit: Fit) -> Coefficients:
    """Return the coefficients as written to a preset file: rounded to four significant digits, or to 0."""
    return Coefficients.model_validate({name: _stated(value) for name, value in fit.coefficients})


def rounded_front_end(fit: Fit) -> FrontEndSettings | None:
    """Return the front end as written to a preset file."""
    if fit.front_end is None:
        return None
    return FrontEndSettings.model_validate({name: _stated(getattr(fit.front_end, name)) for name in FRONT_END})


def stated(fit: Fit) -> dict[str, float | None]:
    """Return the fitted values as written to a preset file, by name."""
    steps, front_end = rounded(fit), rounded_front_end(fit)
    return {name: getattr(front_end if name in FRONT_END else steps, name) for name in fit.free}


def valid_range(cases: Sequence[Case]) -> dict[str, Any]:
    """Return the range of a set of measurements, with the keys of ``valid`` in a preset file."""
    return _hardware_range(cases) | _step_range([batch for case in cases for batch in _batches(case)])


def preset_text(fit: Fit, origin: Provenance, errors: Sequence[ErrorRow], valid: Mapping[str, Any]) -> str:
    """Return the preset as YAML."""
    values = rounded(fit)
    head = {
        "description": origin.description,
        "version": origin.version,
        "gpu": origin.gpu,
        "engine": origin.engine,
        "fitted_on": origin.fitted_on,
    }
    lines = [f"{key}: {_scalar(value)}" for key, value in head.items()]
    if origin.kernels:
        lines.append("kernels: true")
    if origin.async_scheduling is not None:
        lines.append(f"async_scheduling: {str(origin.async_scheduling).lower()}")
    lines.append("errors:" if errors else "errors: []")
    lines += [
        f"  - {{data: {_scalar(row.group)}, rows: {row.rows}, mape_percent: {row.mape:.2f}, "
        f"median_percent: {row.median:.2f}, bias_percent: {row.bias:.2f}}}"
        for row in errors
    ]
    loose = [f"{name}: {why}" for name, why in fit.not_identified.items()]
    lines.append("not_identified:" if loose else "not_identified: []")
    lines += [f"  - {_scalar(text)}" for text in loose]
    lines.append("valid:")
    lines += [f"  {key}: [{', '.join(map(_entry, value))}]" for key, value in valid.items()]
    lines += _mapping("server", origin.server)
    front_end = rounded_front_end(fit)
    if front_end is not None:
        lines += _mapping("front_end", {name: getattr(front_end, name) for name in FRONT_END})
    lines.append("facts:")
    for name, (_, source) in origin.given.items():
        lines += [f"  - source: {_scalar(source)}", f"    {name}: {_scalar(getattr(values, name))}"]
    lines.append(f"  - source: {_scalar('fitted to the data above: soft-L1 loss of relative errors, within bounds')}")
    lines += [f"    {name}: {_scalar(getattr(values, name))}" for name in fit.free if name not in FRONT_END]
    return "\n".join(lines) + "\n"


def _mapping(key: str, values: Mapping[str, Any]) -> list[str]:
    return [f"{key}:", *(f"  {name}: {_scalar(value)}" for name, value in values.items())] if values else []


def _hardware_range(cases: Sequence[Case]) -> dict[str, Any]:
    """Return the range of the models and their deployments."""
    return {
        "tensor_parallel": sorted({case.tensor_parallel for case in cases}),
        "experts": sorted({_layout(case) for case in cases}),
        "weights": sorted({case.model.matrix_format or "bf16" for case in cases}),
        "models": sorted({served_as(case.model) for case in cases}),
        "parameters_b": _span(case.model.active_parameters / 1e9 for case in cases),
    }


def _layout(case: Case) -> str:
    return expert_layout(case.model, case.tensor_parallel, expert_parallel=case.expert_parallel)


def _step_range(batches: Sequence[Batch]) -> dict[str, Any]:
    """Return the range of the measured steps, without the quantities that no step had."""
    decoding = [batch for batch in batches if batch.decode_seqs]
    found = {
        "decode_seqs": _span(batch.decode_seqs for batch in decoding),
        "context_tokens": _span(batch.context_tokens / batch.decode_seqs for batch in decoding),
        "prefill_tokens": _span(batch.prefill_tokens for batch in batches if batch.prefill),
    }
    return {key: value for key, value in found.items() if value is not None}


def _stated(value: float | None) -> float | None:
    if value is None:
        return None
    return float(f"{value:.{_DIGITS}g}") if abs(value) > _NEXT_TO_ZERO else 0.0


def _batches(case: Case) -> Iterable[Batch]:
    return case.batches if isinstance(case, ServedCase) else (case.batch,)


def _span(values: Iterable[float]) -> list[float] | None:
    found = [float(value) for value in values]
    return [_down(min(found)), _up(max(found))] if found else None


def _down(value: float) -> float:
    """Round down to three significant digits, so that the range contains the data."""
    rounded_value = float(f"{value:.3g}")
    return rounded_value if rounded_value <= value else float(f"{value * 0.9951:.3g}")


def _up(value: float) -> float:
    rounded_value = float(f"{value:.3g}")
    return rounded_value if rounded_value >= value else float(f"{value * 1.0049:.3g}")


def _entry(value: Any) -> str:
    return _scalar(value) if isinstance(value, str) and " " in value else str(value)


def _scalar(value: Any) -> str:
    """Return a value as YAML, with quoted text."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
