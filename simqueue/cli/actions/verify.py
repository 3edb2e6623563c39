"""``simqueue verify``: compare simulated means with exact queueing theory."""

from __future__ import annotations

from simqueue.cli.actions.common import load_scenario, print_json, say
from simqueue.cli.actions.screen import print_rows, progress_bar
from simqueue.errors import InputError, RunError
from simqueue.execution import Executor
from simqueue.experiment.verification import (
    CASES,
    DIFFERS,
    LARGEST_ERROR,
    POWER,
    REPLICATIONS,
    SIGNIFICANCE,
    Verified,
    case_scenario,
    rows_of,
)
from simqueue.experiment.verification import verify as compared
from simqueue.names import unknown
from simqueue.scenario import Scenario

SCENARIO_REPLICATIONS = 10
"""Replications of a scenario that is given."""


def verify(
    scenario: str | None,
    set_: list[str] | None,
    seed: int | None,
    case: list[str] | None,
    replications: int | None,
    workers: Executor,
    json_: bool,
    quiet: bool,
) -> None:
    """Run the cases and print a verdict for each mean; raise RunError if any mean differs."""
    scenarios = [one.resolve() for one in _scenarios(scenario, set_, seed, case, replications)]
    rows = rows_of(scenarios)
    found: list[Verified] = []
    for chosen in scenarios:
        with progress_bar(chosen.name, quiet=quiet) as progress:
            found += compared(chosen, rows=rows, workers=workers, progress=progress)
    if json_:
        print_json([_plain(one, rows) for one in found])
    else:
        _show(found, rows)
    wrong = [one for one in found if one.verdict == DIFFERS]
    if wrong:
        names = ", ".join(f"{one.case} {one.metric}" for one in wrong)
        raise RunError(f"the simulation differs from theory: {names}")


def _scenarios(
    scenario: str | None,
    overrides: list[str] | None,
    seed: int | None,
    cases: list[str] | None,
    replications: int | None,
) -> list[Scenario]:
    """Return the scenario that was given, or the built-in cases."""
    if scenario is not None:
        if cases:
            raise InputError("--case: names a built-in case and cannot be combined with a scenario")
        each = SCENARIO_REPLICATIONS if replications is None else replications
        return [load_scenario(scenario, overrides, seed, each)]
    if overrides:
        raise InputError("--set: needs a scenario; the built-in cases are fixed")
    for name in cases or ():
        if name not in CASES:
            raise InputError(f"--case: {unknown('case', name, CASES)}")
    each = REPLICATIONS if replications is None else replications
    return [case_scenario(name, seed=1 if seed is None else seed, replications=each) for name in cases or CASES]


def _plain(one: Verified, rows: int) -> dict[str, object]:
    """Return a verdict as JSON values."""
    simulated = one.simulated
    return {
        "case": one.case,
        "policy": one.policy,
        "model": one.model or None,
        "metric": one.metric or None,
        "theory": one.theory,
        "simulated": simulated.value if simulated else None,
        "half_width": simulated.half_width if simulated else None,
        "detectable_error": one.detectable,
        "significance": SIGNIFICANCE / rows if rows else None,
        "verdict": one.verdict,
        "note": one.note or None,
    }


def _show(found: list[Verified], rows: int) -> None:
    titles = ("case", "model", "mean of", "theory", "simulated", "difference", "detects", "verdict")
    print_rows(titles, [_cells(one) for one in found], left=("case", "model", "mean of"), wrapped=("verdict",))
    if rows:
        say(
            f"detects: smallest error that these runs would find with probability {POWER:g}, at a significance of "
            f"{100 * SIGNIFICANCE:g} % for all {rows} rows together; a row agrees if that is at most "
            f"{100 * LARGEST_ERROR:g} % and no difference is significant"
        )
    for one in found:
        if one.note:
            say(f"{one.case}: {one.policy}: {one.note}")


def _cells(one: Verified) -> list[str]:
    """Return a verdict as a row of the table."""
    if one.theory is None or one.simulated is None:
        return [f"{one.case}: {one.policy}", one.model or "-", *["-"] * 5, one.verdict]
    half_width = one.simulated.half_width
    simulated = f"{one.simulated.value:.5g}" + ("" if half_width is None else f" ±{half_width:.2g}")
    difference = f"{100 * (one.simulated.value / one.theory - 1):+.2f} %"
    metric = one.metric.removeprefix("mean_").removesuffix("_ms").upper() + " (ms)"
    detects = "-" if one.detectable is None else f"{100 * one.detectable:.2g} %"
    return [one.case, one.model, metric, f"{one.theory:.5g}", simulated, difference, detects, one.verdict]
