"""The end of the warm-up, which is the same for all policies of a scenario."""

from __future__ import annotations

from collections.abc import Sequence

from simqueue.experiment.replication import Replication
from simqueue.results.metrics import Floats
from simqueue.results.steadiness import run_trend
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.statistics.warmup import Truncation, averaged_series, mser5


def warm_up(scenario: ResolvedScenario, made: Sequence[Replication]) -> tuple[float, tuple[str, ...]]:
    """Return the end of the warm-up in seconds, and warnings about it.

    With ``auto``, MSER-5 is applied to the TTFT by order of arrival, averaged over replications, for each policy. The
    latest cut is used for all policies, so that they are compared on the same requests. Policies whose queue grows
    throughout the run have no steady part and are not considered.
    """
    if scenario.warmup_s != "auto":
        return scenario.warmup_s, ()
    stable = [name for name in scenario.policy_names if not _grows(made, name)]
    if not stable:
        return 0.0, ("warm-up auto: every policy is overloaded and has no steady part; nothing is cut",)
    cuts = {name: mser5(averaged_series(_ttft_series(made, name))) for name in stable}
    notes = [_inconclusive(name, cut) for name, cut in cuts.items() if not cut.conclusive]
    cut = max(found.cut for found in cuts.values())
    if cut == 0:
        return 0.0, tuple(notes)
    return _latest_arrival_s(made, cut), tuple(notes)


def _latest_arrival_s(made: Sequence[Replication], number: int) -> float:
    """Return the latest time at which any run's request of this number arrives, or its last one if it has fewer."""
    arrivals = [run.recording.requests["arrival_s"] for replication in made for run in replication.runs]
    return max(float(arrival_s[min(number, len(arrival_s) - 1)]) for arrival_s in arrivals)


def _ttft_series(made: Sequence[Replication], policy: str) -> list[Floats]:
    recordings = [run.recording for replication in made for run in replication.runs if run.policy == policy]
    return [recording.requests["first_token_s"] - recording.requests["arrival_s"] for recording in recordings]


def _grows(made: Sequence[Replication], policy: str) -> bool:
    """Whether the queue of a policy grows in more than half of its replications."""
    runs = [run for replication in made for run in replication.runs if run.policy == policy]
    grew = [found.rising for run in runs if (found := run_trend(run.recording)) is not None]
    return 2 * sum(grew) > len(runs)


def _inconclusive(policy: str, cut: Truncation) -> str:
    return (
        f"{policy}: warm-up auto found no steady part (MSER-5 over {cut.n} requests, {cut.cut} are cut); "
        "use more requests, or give warmup_s"
    )
