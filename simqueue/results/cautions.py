"""All warnings of a result: those of the scenario, of its runs, and of its policies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from simqueue.results import notices
from simqueue.results.classes import ALL_CLASSES
from simqueue.results.doubts import doubts
from simqueue.results.grouping import Warned, grouped
from simqueue.results.policyrun import PolicyRun
from simqueue.results.steadiness import too_light
from simqueue.results.summaries import Summaries
from simqueue.results.summary import Row

_OF_ROWS: tuple[Callable[[Row], list[str]], ...] = (notices.overload, notices.rush)


def cautions(runs: Sequence[PolicyRun], summaries: Summaries, own: Sequence[str]) -> tuple[str, ...]:
    """Return one line per warning; equal ones of several policies are one line that names them.

    Parameters
    ----------
    runs : sequence of PolicyRun
    summaries : Summaries
        The rows of these runs.
    own : sequence of str
        Warnings of the scenario; those that begin with the name of a policy are about it.
    """
    counts = Counter(run.policy for run in runs)
    about = {line: _about(line, counts) for line in own}
    general = [line for line, found in about.items() if found is None]
    found = chain(filter(None, about.values()), _of_runs(runs, summaries), _of_policies(runs, summaries))
    light = too_light([run.recording for run in runs])
    return (*general, *grouped(list(found), counts), *([light] if light else []))


def _about(line: str, policies: Counter[str]) -> Warned | None:
    """Return a line of the scenario that begins with the name of a policy; None for others."""
    policy, separator, text = line.partition(": ")
    return Warned(policy, text) if separator and policy in policies else None


def _of_runs(runs: Sequence[PolicyRun], summaries: Summaries) -> Iterator[Warned]:
    overall = [row for row in summaries.of_replications if row["request_class"] == ALL_CLASSES]
    for run, row in zip(runs, overall, strict=True):
        told = (
            *notices.nothing_measured(row, run.warmup_s),
            *notices.cut_off(run.recording.requests, run.window),
            *notices.first_to_end(run.window),
        )
        for line in (*run.recording.warnings, *told):
            yield Warned(run.policy, line, run.replication)


def _of_policies(runs: Sequence[PolicyRun], summaries: Summaries) -> Iterator[Warned]:
    openly = {run.policy for run in runs if run.signs.arrives_openly}
    names = dict.fromkeys(run.policy for run in runs)
    for name in names:
        requests = [run.recording.requests for run in runs if run.policy == name]
        yield from (Warned(name, line) for line in notices.rejections(requests))
    for row in summaries.of_policies:
        policy = str(row["policy"])
        yield from (Warned(policy, line) for told in _OF_ROWS for line in told(row))
        if row["request_class"] == ALL_CLASSES:
            yield from (Warned(policy, line) for line in doubts(row, summaries.samples(policy, ALL_CLASSES)))
    for row in summaries.of_policies:
        if row["policy"] in openly:
            yield from (Warned(str(row["policy"]), line) for line in notices.unclear(row))
