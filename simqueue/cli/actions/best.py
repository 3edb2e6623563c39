"""``simqueue best``: find the best policy of a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from simqueue.cli.actions.common import load_scenario, print_json, print_warnings, say
from simqueue.cli.actions.screen import print_rows, progress_bar
from simqueue.execution import Executor
from simqueue.experiment.best import Ranked, Selection
from simqueue.experiment.best import best as select
from simqueue.experiment.best_at_errors import best_at_errors
from simqueue.experiment.comparing import about_percentiles
from simqueue.outputs import Outputs
from simqueue.report.lines import metric_label, number
from simqueue.results import store


def best(
    scenario: str,
    set_: list[str] | None,
    seed: int | None,
    metric: str,
    largest: bool | None,
    zone: str,
    confidence: float,
    max_replications: int,
    with_model_error: bool,
    out: Path | None,
    workers: Executor,
    json_: bool,
    quiet: bool,
) -> None:
    """Run the policies until the best one is known, and print the ranking, as a table or as JSON."""
    loaded = load_scenario(scenario, set_, seed)
    with Outputs() as outputs:
        folder = None if out is None else outputs.folder(out, store.MARKER)
        with progress_bar(loaded.name, quiet=quiet) as progress:
            search = partial(
                select,
                metric=metric,
                largest=largest,
                zone=zone,
                confidence=confidence,
                max_replications=max_replications,
                workers=workers,
                progress=progress,
            )
            held = best_at_errors(loaded.resolve(), search) if with_model_error else None
            found = search(loaded) if held is None else held.selection
        written = [] if folder is None else found.save(folder)
    if json_:
        plain = found.plain() if held is None else held.plain()
        print_json({"scenario": loaded.name, "warnings": list(found.result.warnings), **plain})
        return
    print_warnings(found.result.warnings)
    _show(found, zone)
    for line in () if held is None else held.lines():
        say(line)
    for path in written:
        say(f"written: {path}")


def _show(found: Selection, zone: str) -> None:
    titles = ("policy", metric_label(found.metric), "to the best", "runs", "note")
    print_rows(titles, [_cells(one, found) for one in found.ranking], left=("policy",), wrapped=("note",))
    for line in _lines(found, zone):
        say(line)


def _cells(one: Ranked, found: Selection) -> list[str]:
    if one.policy == found.best:
        note = "best" if found.decided else "leads"
    else:
        note = ("larger" if one.difference > 0 else "smaller") if one.told_apart else "not told apart"
    difference = "" if one.policy == found.best else f"{'+' if one.difference > 0 else ''}{number(one.difference)}"
    return [one.policy, number(one.mean), difference, str(one.replications), note]


def _lines(found: Selection, zone: str) -> Iterator[str]:
    """Yield what is known, and what it took."""
    direction = "larger" if found.largest else "smaller"
    unit = " ms" if found.metric.endswith("_ms") else ""
    share = f" ({zone.strip()} of the best mean after ten)" if zone.strip().endswith("%") else ""
    width = f"{number(found.zone)}{unit}{share}"
    sure = f"{100 * found.confidence:g} %"
    if found.decided:
        yield f"best: {found.best} ({direction} is better)"
        yield f"with {sure} confidence no other policy is better than it by the indifference zone of {width} or more"
    else:
        most = found.ranking[0].replications
        yield f"no decision after {most} replications: {found.best} leads ({direction} is better; zone {width})"
    if found.not_told_apart:
        yield f"not told apart from {found.best}: {', '.join(found.not_told_apart)}"
    yield f"runs: {found.runs}; without dropping policies, the same rule would have taken {found.equal_runs}"
    yield from about_percentiles([found.metric])
