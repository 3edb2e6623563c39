"""Presets: the values of a roofline with the data they come from, their errors, and the range they hold in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import Field

from simqueue.datafiles.library import Library, facts_in, validated
from simqueue.datafiles.yamlfile import read_yaml
from simqueue.settings import Settings
from simqueue.steptime.coefficients import Coefficients

PRESETS = Library(files("simqueue.steptime") / "presets", "preset")
_ENDINGS = (".yaml", ".yml")


def _range(description: str) -> Any:
    return Field(default=None, min_length=2, max_length=2, description=description)


class Valid(Settings):
    """What the data of a preset spans, ends included; null: nothing is known. Beyond it a run is warned."""

    tensor_parallel: list[int] | None = Field(default=None, description="Numbers of GPUs that were measured.")
    weights: list[str] | None = Field(default=None, description="Formats of the weights that were measured.")
    parameters_b: list[float] | None = _range("Parameters that a token goes through, in billions, from and to.")
    decode_seqs: list[float] | None = _range("Decodes in a step, from and to.")
    context_tokens: list[float] | None = _range("Mean context of a step's decodes, from and to.")
    prefill_tokens: list[float] | None = _range("Prompt tokens in a step, from and to.")


class FitError(Settings):
    """How far a preset is from one group of measurements."""

    data: str = Field(description="Which rows.")
    rows: int = Field(ge=1, description="How many.")
    mape_percent: float = Field(ge=0, description="Mean absolute error relative to the measured value.")
    bias_percent: float = Field(description="Mean error relative to the measured value; negative: too fast.")


class Card(Settings):
    """A preset file without its values: what it is for, where it comes from, how good it is."""

    description: str = Field(min_length=1, description="One line for people.")
    version: int = Field(default=1, ge=1, description="Counts up when a value changes.")
    gpu: str | None = Field(default=None, description="The GPU that was measured; null: any.")
    engine: str | None = Field(default=None, description="The engine and its version; null: none.")
    fitted_on: str | None = Field(default=None, description="The data: origin, rows, licence.")
    errors: list[FitError] = Field(default=[], description="Errors on data it was fitted on, unless said otherwise.")
    not_identified: list[str] = Field(default=[], description="Values that the data does not decide.")
    valid: Valid = Field(default_factory=Valid, description="The range of the data.")
    facts: list[dict[str, Any]] = Field(min_length=1, description="The values, in groups with a source.")


@dataclass(frozen=True, slots=True)
class Preset:
    """A preset by name or file.

    Attributes
    ----------
    name : str
    card : Card
    coefficients : Coefficients
    ideal : bool
        Whether it is a bound by construction, `bandwidth_share` and `mfu` alone, and not a fit.
    """

    name: str
    card: Card
    coefficients: Coefficients
    ideal: bool


def preset_names() -> list[str]:
    """Return the names of the presets that come with the package, sorted."""
    return PRESETS.names()


def is_file(preset: str) -> bool:
    """Say whether a preset is given as a file and not as a name."""
    return preset.endswith(_ENDINGS)


def load_preset(preset: str, base_dir: Path = Path()) -> Preset:
    """Return a preset.

    Parameters
    ----------
    preset : str
        A name from `preset_names`, or a path to a YAML file such as `simqueue calibrate` writes.
    base_dir : Path
        Where a relative path starts.

    Raises
    ------
    InputError
        An unknown name (the nearest is named), or a file that breaks the rules.
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
    """Return one row a preset for a table: what it is for, how good it is, where it holds."""
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
