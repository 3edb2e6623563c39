"""``simqueue verify``: does the simulation agree with queueing theory?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from simqueue.cli.common import Debug, Seed, Set, Workers, console, replicated
from simqueue.errors import InputError, RunError
from simqueue.names import unknown

if TYPE_CHECKING:
    from simqueue.experiment.verification import Verified
    from simqueue.scenario import Scenario


def verify(
    scenario: Annotated[
        str | None, typer.Argument(metavar="[SCENARIO]", help="Without it the built-in cases are run.")
    ] = None,
    set_: Set = None,
    seed: Seed = None,
    case: Annotated[
        list[str] | None, typer.Option("--case", metavar="NAME", help="Only this built-in case; repeatable.")
    ] = None,
    replications: Annotated[
        int, typer.Option("--replications", metavar="N", min=2, help="Independent runs of each case.")
    ] = 10,
    workers: Workers = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    debug: Debug = False,  # noqa: ARG001 - read where errors are shown
) -> None:
    """Run cases that queueing theory solves, and compare.

    A mean agrees within three half-widths of its interval or 2 %; where the half-width exceeds 3 %, there are not
    enough runs to tell. Leaves with 1 if anything differs, else with 0, also where there are not enough runs.
    """
    from simqueue.experiment.verification import DIFFERS
    from simqueue.experiment.verification import verify as compared

    found: list[Verified] = []
    for chosen in _scenarios(scenario, set_ or [], seed, case, replications):
        found += compared(chosen, workers=workers)
    if json_:
        import json

        typer.echo(json.dumps([_plain(one) for one in found], allow_nan=False))
    else:
        _show(found)
    wrong = [one for one in found if one.verdict == DIFFERS]
    if wrong:
        names = ", ".join(f"{one.case} {one.metric}" for one in wrong)
        raise RunError(f"the simulation differs from theory: {names}")


def _scenarios(
    scenario: str | None, overrides: list[str], seed: int | None, cases: list[str] | None, replications: int
) -> list[Scenario]:
    from simqueue.experiment.verification import CASES, case_scenario

    if scenario is not None:
        from simqueue.scenario import load
        from simqueue.scenario.library import find

        if cases:
            raise InputError("--case names a built-in case; it does not go with a scenario")
        return [load(find(scenario), replicated(overrides, replications), seed)]
    if overrides:
        raise InputError("--set goes with a scenario; the built-in cases are fixed")
    for name in cases or ():
        if name not in CASES:
            raise InputError(f"--case: {unknown('case', name, CASES)}")
    return [case_scenario(name, seed=1 if seed is None else seed, replications=replications) for name in cases or CASES]


def _plain(one: Verified) -> dict[str, object]:
    simulated = one.simulated
    return {
        "case": one.case,
        "policy": one.policy,
        "model": one.model or None,
        "metric": one.metric or None,
        "theory": one.theory,
        "simulated": simulated.mean if simulated else None,
        "half_width": simulated.half_width if simulated else None,
        "verdict": one.verdict,
        "note": one.note or None,
    }


def _show(found: list[Verified]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("case", "theory", "mean of", "theory", "simulated", "difference", "verdict"):
        table.add_column(title, justify="right" if title in ("simulated", "difference") else "left")
    for one in found:
        if one.theory is None or one.simulated is None:
            table.add_row(f"{one.case}: {one.policy}", one.model or "-", "-", "-", "-", "-", one.verdict)
            continue
        width = one.simulated.half_width
        shown = f"{one.simulated.mean:.5g}" + ("" if width is None else f" ±{width:.2g}")
        difference = f"{100 * (one.simulated.mean / one.theory - 1):+.2f} %"
        metric = one.metric.removeprefix("mean_").removesuffix("_ms").upper() + " (ms)"
        table.add_row(one.case, one.model, metric, f"{one.theory:.5g}", shown, difference, one.verdict)
    console().print(table)
    for one in found:
        if one.note:
            typer.echo(f"{one.case}: {one.policy}: {one.note}")
