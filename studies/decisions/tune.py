"""How often `tune` finds the best system of spaces that are enumerated whole, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from simqueue.decisions.conditions import parse_conditions
from simqueue.decisions.judgement import Verdict, judge
from simqueue.decisions.tuning.answer import Tuning
from simqueue.decisions.tuning.candidates import Candidate, settled
from simqueue.decisions.tuning.space import axes_in, space_of
from simqueue.decisions.tuning.tune import tune
from simqueue.errors import InputError
from simqueue.execution import Failed, executor
from simqueue.experiment.runner import run
from simqueue.scenario.load import source_of_mapping
from simqueue.sweeps.design import Design, points_of
from studies.decisions.spaces import CASES, REQUESTS, Case

PAGE: Final = "decisions-tune.md"
REPLICATIONS: Final = 8
"""Runs of each system of an enumeration: the fewest after which a search takes a system."""
_SEED: Final = 1000
"""Of the enumerations: other requests than those of the searches."""


@dataclass(frozen=True, slots=True)
class Whole:
    """One system of an enumeration.

    Attributes
    ----------
    number : int
    cost : float or None
        In USD per hour.
    verdict : Verdict
    metric : float or None
        Mean E2EL, or the metric that is the goal.
    steps : int
    seconds : float
        Of the processor.
    """

    number: int
    cost: float | None
    verdict: Verdict
    metric: float | None
    steps: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case: the enumeration and the search.

    Attributes
    ----------
    case : Case
    whole : list of Whole
    found : Tuning
    seconds : float
        Of the processor, for the search.
    """

    case: Case
    whole: list[Whole]
    found: Tuning
    seconds: float

    @property
    def is_right(self) -> bool:
        """Whether the answer costs least of what keeps the limits, and is within the zone of the best metric."""
        best = self.found.best
        mine = None if best is None else next(one for one in self.whole if one.number == best.number)
        if mine is None or mine.verdict is Verdict.NOT_MET:
            return False
        rivals = [one for one in self.whole if one.verdict is Verdict.MET and one.metric is not None]
        if self.case.minimize == "cost":
            if min(one.cost or 0.0 for one in rivals) < (mine.cost or 0.0) - 1e-9:
                return False
            rivals = [one for one in rivals if abs((one.cost or 0.0) - (mine.cost or 0.0)) < 1e-9]
        least = min([one.metric for one in rivals if one.metric is not None], default=None)
        return least is None or (mine.metric is not None and mine.metric <= (1 + self.found.zone) * least)

    @property
    def shares(self) -> tuple[float, float, float]:
        """What the search took of what the enumeration took: in requests, in steps, and in time of the processor."""
        spent = self.found.spent
        return (
            spent.requests / (len(self.whole) * REPLICATIONS * REQUESTS),
            spent.steps / sum(one.steps for one in self.whole),
            self.seconds / sum(one.seconds for one in self.whole),
        )


def write(folder: Path) -> list[Path]:
    """Enumerate the spaces, search them, and write the page."""
    outcomes = [measured(case) for case in CASES]
    page = folder / PAGE
    page.write_text("\n".join(_lines(outcomes)) + "\n", encoding="utf-8", newline="\n")
    return [page]


def measured(case: Case) -> Outcome:
    """Search a space, and run all of its systems."""
    began = time.process_time()
    found = tune(case.scenario, case.space, case.slo, minimize=case.minimize, workers=1)
    seconds = time.process_time() - began
    print(f"{case.name}: {found.best and found.best.label}, {found.spent}", flush=True)
    return Outcome(case, enumerated(case), found, seconds)


def enumerated(case: Case) -> list[Whole]:
    """Run every system of a space as often as the confidence of the search needs."""
    space = space_of(source_of_mapping(case.scenario), axes_in(case.space))
    points = points_of(Design(grid=space.axes), space.cells.is_whole)
    conditions = parse_conditions(case.slo)
    tasks = [(case, one) for one in settled(space, points.values, conditions) if one.scenario is not None]
    whole: dict[int, Whole] = {}
    with executor() as pool:
        for number, outcome in pool.unordered(_run_whole, tasks):
            if isinstance(outcome, Failed):
                outcome.reraise()
            whole[number] = outcome
    return [whole[number] for number in sorted(whole)]


def _run_whole(task: tuple[Case, Candidate]) -> Whole:
    case, one = task
    began = time.process_time()
    if one.scenario is None or one.cost is None:
        raise InputError(one.reason)
    result = run(one.scenario.with_(seed=_SEED, replications=REPLICATIONS), workers=1)
    policy = result.policies[0]
    judgement = judge(result, policy, parse_conditions(case.slo))
    column = "mean_e2el_ms" if case.minimize == "cost" else case.minimize
    value: Any = result.summary_rows[0][column]
    steps = sum(
        int(part["repeat"].sum()) for one_run in result.runs for part in one_run.recording.steps.parts("repeat")
    )
    cost = one.cost.usd_per_hour
    return Whole(one.number, cost, judgement.verdict, value, steps, time.process_time() - began)


def _lines(outcomes: Sequence[Outcome]) -> list[str]:
    right = sum(one.is_right for one in outcomes)
    return [
        *_HEAD.format(replications=REPLICATIONS, requests=f"{REQUESTS:,}", right=right, of=len(outcomes)).split("\n")
    ] + [_row(one) for one in outcomes]


_HEAD: Final = """<!-- written by: python -m studies.decisions tune -->
# The cheapest system, against spaces that were enumerated whole

Every system of each space was run {replications} times with {requests} requests, with another seed than the
search. Its verdict is that of the intervals over these replications. The search is right if its answer costs
least of all systems that keep the limits there, is not beyond a limit there, and is within 2 % of the best
value of the metric that decides between systems of the same cost. Requests are those that were simulated, also
in short runs; time is that of the processor, with the capacity law and the judgement. The last three columns
are shares of what the enumeration took.

Right: {right} of {of}.

| space | limits | systems | keep them | best | USD/hour | right | requests | steps | time |
|---|---|---|---|---|---|---|---|---|---|"""


def _row(one: Outcome) -> str:
    best = one.found.best
    kept = sum(whole.verdict is Verdict.MET for whole in one.whole)
    usd = None if best is None else best.usd_per_hour
    cells = [
        one.case.name,
        one.found.limits.replace("<=", " ≤ "),
        str(len(one.whole)),
        str(kept),
        "none" if best is None else best.label,
        "" if usd is None else f"{usd:.2f}",
        "yes" if one.is_right else "no",
        *(f"{100 * share:.1f} %" for share in one.shares),
    ]
    return f"| {' | '.join(cells)} |"
