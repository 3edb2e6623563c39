"""Fits the presets of the package and makes the text of their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simqueue.calibration import Case, ErrorRow, Fit, error_row, error_rows, fit, percent_errors, predict
from simqueue.calibration.card import Provenance, preset_text, rounded, rounded_front_end, stated, valid_range
from simqueue.steptime import Coefficients
from studies.fidelity.blackwell import BLACKWELL_RECIPES
from studies.fidelity.recipes import RECIPES, Recipe

FOLDS: Final = 5
TTFT: Final = "served TTFT"
"""Phase of the cases that are means of TTFT."""


@dataclass(frozen=True, slots=True)
class FittedPreset:
    """A fitted preset.

    Attributes
    ----------
    recipe : Recipe
    cases : sequence of Case
        The measurements.
    fit : Fit
    coefficients : Coefficients
        The fitted values, rounded as in the file.
    errors : sequence of ErrorRow
        Of the rounded values: on the data, and held out.
    text : str
        The preset's file.
    """

    recipe: Recipe
    cases: Sequence[Case]
    fit: Fit
    coefficients: Coefficients
    errors: Sequence[ErrorRow]
    text: str


def fit_all(folder: Path) -> list[FittedPreset]:
    """Fit every preset to the measurements in `folder`, in the order of the recipes."""
    done: dict[str, FittedPreset] = {}
    for recipe in (*RECIPES, *BLACKWELL_RECIPES):
        base = None if recipe.base is None else done[recipe.base].coefficients
        done[recipe.name] = fit_preset(recipe, folder, base)
    return list(done.values())


def fit_preset(recipe: Recipe, folder: Path, base: Coefficients | None) -> FittedPreset:
    """Fit one preset to its data."""
    cases = recipe.cases(folder)
    fixed = _fixed(recipe, base)
    found = fit(cases, recipe.free, fixed, recipe.start)
    values = rounded(found)
    predicted_s = predict(cases, values, rounded_front_end(found))
    errors = error_rows(cases, predicted_s, lambda case: case.phase)
    if len(errors) > 1:
        errors = [error_row("all", percent_errors(cases, predicted_s)), *errors]
    held_out = _held_out(recipe, cases, fixed, {name: value for name, value in stated(found).items() if value})
    errors += _by_phase(cases, held_out)
    text = preset_text(found, _origin(recipe, values, fixed), errors, valid_range(cases))
    return FittedPreset(recipe, cases, found, values, errors, text)


def _by_phase(cases: Sequence[Case], held_out: NDArray[np.float64]) -> list[ErrorRow]:
    """Return the held-out errors of all cases, or of TPOT and of TTFT where both were fitted."""
    name = f"{FOLDS}-fold held out"
    of_ttft = np.array([case.phase == TTFT for case in cases])
    if not of_ttft.any():
        return [error_row(name, held_out)]
    return [error_row(name, held_out[~of_ttft]), error_row(f"{name}, TTFT", held_out[of_ttft])]


def _fixed(recipe: Recipe, base: Coefficients | None) -> dict[str, float | None]:
    inherited: Mapping[str, float | None] = {} if base is None else base.model_dump()
    given = {name: value for name, (value, _) in recipe.given.items()}
    return {name: value for name, value in {**inherited, **given}.items() if name not in recipe.free}


def _origin(recipe: Recipe, values: Coefficients, fixed: Mapping[str, float | None]) -> Provenance:
    default = Coefficients(bandwidth_share=1.0, mfu=1.0)
    given = dict(recipe.given)
    for name in fixed:
        if name not in given and getattr(values, name) != getattr(default, name):
            given[name] = (getattr(values, name), f"preset {recipe.base}")
    return Provenance(
        recipe.description,
        recipe.gpu,
        recipe.engine,
        recipe.fitted_on,
        recipe.async_scheduling,
        recipe.version,
        given=given,
        kernels=recipe.kernels,
        server=recipe.server,
    )


def _held_out(
    recipe: Recipe, cases: Sequence[Case], fixed: Mapping[str, float | None], start: Mapping[str, float]
) -> NDArray[np.float64]:
    """Return the error of each case, in percent, under a fit without its fold: every FOLDS-th row of the data.

    The searches begin at `start`, the fit to all cases.
    """
    percent = np.empty(len(cases))
    rows = {where: place for place, where in enumerate(dict.fromkeys(case.where for case in cases))}
    places = np.array([rows[case.where] for case in cases])  # TPOT and TTFT of one run are in the same fold
    for fold in range(FOLDS):
        inside = places % FOLDS == fold
        if not inside.any():
            continue
        others = [case for case, held in zip(cases, inside, strict=True) if not held]
        values = fit(others, recipe.free, fixed, start)
        held = [case for case, out in zip(cases, inside, strict=True) if out]
        percent[inside] = percent_errors(held, predict(held, values.coefficients, values.front_end))
    return percent
