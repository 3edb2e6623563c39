"""Presets: values of a roofline, with their data, their errors and the range in which they are valid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from simqueue.datafiles.library import Library, facts_in, validated
from simqueue.datafiles.yamlfile import read_yaml
from simqueue.frontend import FrontEndSettings
from simqueue.settings import Settings
from simqueue.steptime.coefficients import Coefficients

PRESETS = Library(files("simqueue.steptime") / "presets", "preset")
_ENDINGS = (".yaml", ".yml")

ExpertLayout = Literal["none", "divided", "whole"]
"""How the experts of a model are on the GPUs; none: a dense model."""


def _range(description: str) -> Any:
    return Field(default=None, min_length=2, max_length=2, description=description)


class Valid(Settings):
    """The range of a preset's data, bounds included; null: unknown. A run outside it has a warning."""

    tensor_parallel: list[int] | None = Field(default=None, description="measured numbers of GPUs")
    weights: list[str] | None = Field(default=None, description="measured formats of the weights")
    experts: list[ExpertLayout] | None = Field(
        default=None,
        description="measured mixtures of experts: none (dense models), divided (a share of every expert on each GPU), "
        "whole (whole experts on each GPU)",
    )
    models: list[str] | None = Field(default=None, description="measured models, each with the format of its weights")
    parameters_b: list[float] | None = _range("active parameters per token in billions, from and to")
    decode_seqs: list[float] | None = _range("decodes per step, from and to")
    context_tokens: list[float] | None = _range("mean context per decode, from and to")
    prefill_tokens: list[float] | None = _range("prompt tokens per step, from and to")


class FitError(Settings):
    """Errors of a preset for one group of measurements."""

    data: str = Field(description="name of the group")
    rows: int = Field(ge=1, description="number of measurements")
    mape_percent: float = Field(ge=0, description="mean absolute error relative to the measured value")
    median_percent: float | None = Field(default=None, ge=0, description="median of the absolute errors")
    bias_percent: float = Field(description="mean error relative to the measured value; negative: too fast")


class MeasuredServer(Settings):
    """Settings of the server that a preset was fitted to; null: not known."""

    version: str | None = Field(default=None, description="version of the engine")
    max_num_batched_tokens: int | None = Field(default=None, ge=1, description="token budget per step")
    max_num_seqs: int | None = Field(default=None, ge=1, description="maximum number of running requests")
    gpu_memory_utilization: float | None = Field(
        default=None, gt=0, le=1, description="share of the GPU's memory for weights and KV"
    )


class Card(Settings):
    """A preset file without its values: purpose, origin, errors and valid range."""

    description: str = Field(min_length=1, description="one line of text")
    version: int = Field(default=1, ge=1, description="increases when a value changes")
    gpu: str | None = Field(default=None, description="measured GPU; null: any")
    engine: str | None = Field(default=None, description="measured engine and version; null: none")
    async_scheduling: bool | None = Field(
        default=None, description="whether the measured engine planned the next step while one ran; null: not known"
    )
    kernels: bool = Field(default=False, description="whether it has the time of kernels alone, without a server")
    fitted_on: str | None = Field(default=None, description="the data: origin, rows, licence")
    errors: list[FitError] = Field(default=[], description="errors on the data of the fit, unless stated otherwise")
    not_identified: list[str] = Field(default=[], description="values that the data does not determine")
    valid: Valid = Field(default_factory=Valid, description="range of the data")
    server: MeasuredServer | None = Field(default=None, description="the measured server")
    front_end: FrontEndSettings | None = Field(
        default=None, description="its front end, as fitted to TTFT; used with `server: as measured`"
    )
    facts: list[dict[str, Any]] = Field(min_length=1, description="the values, in groups with a source")


@dataclass(frozen=True, slots=True)
class Preset:
    """A preset.

    Attributes
    ----------
    name : str
        Name or file.
    card : Card
        Origin, errors and valid range.
    coefficients : Coefficients
        The values.
    ideal : bool
        Whether it has `bandwidth_share` and `mfu` only: a bound by construction and not a fit.
    changed : bool
        Whether a scenario has replaced some of its values.
    """

    name: str
    card: Card
    coefficients: Coefficients
    ideal: bool
    changed: bool = False


def preset_names() -> list[str]:
    """Return the names of the presets in the package, sorted."""
    return PRESETS.names()


def is_file(preset: str) -> bool:
    """Return whether a preset is a file and not a name."""
    return preset.endswith(_ENDINGS)


def load_preset(preset: str, base_dir: Path = Path()) -> Preset:
    """Return a preset.

    Parameters
    ----------
    preset : str
        A name from `preset_names`, or a path of a YAML file as written by `simqueue calibrate`.
    base_dir : Path
        Start of a relative path.

    Raises
    ------
    InputError
        If the name is unknown (the message has the nearest one), or the file is not valid.
    """
    if is_file(preset):
        return _preset(preset, read_yaml(base_dir / preset))
    if preset in preset_names():
        return _packaged(preset)
    raise PRESETS.unknown(preset)


@cache
def _packaged(name: str) -> Preset:
    return _preset(name, PRESETS.read(name))


def _preset(preset: str, content: Mapping[str, Any]) -> Preset:
    card = validated(Card, content, f"preset '{preset}'")
    values: Mapping[str, Any] = facts_in(content, f"preset '{preset}'").values
    coefficients = validated(Coefficients, values, f"preset '{preset}'")
    return Preset(preset, card, coefficients, set(values) <= {"bandwidth_share", "mfu"})


def preset_rows() -> list[dict[str, Any]]:
    """Return one row per preset for a table, with purpose and errors."""
    return [_row(load_preset(name)) for name in preset_names()]


def _row(preset: Preset) -> dict[str, Any]:
    card = preset.card
    errors = [f"{error.data} {error.mape_percent:g} %" for error in card.errors]
    return {
        "name": preset.name,
        "description": card.description,
        "gpu": card.gpu,
        "engine": card.engine,
        "mean_abs_error": ", ".join(errors) or None,
        "tensor_parallel": None if card.valid.tensor_parallel is None else _listed(card.valid.tensor_parallel),
        "bandwidth_share": preset.coefficients.bandwidth_share,
        "mfu": preset.coefficients.mfu,
    }


def _listed(values: list[int]) -> str:
    return ", ".join(map(str, values))
