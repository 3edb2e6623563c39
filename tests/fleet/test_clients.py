"""Clients that react to answers, before fleets: sessions, retries, a concurrency limit, with ties on purpose."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from simqueue.request import Status
from simqueue.simulation import Recording, Simulation
from simqueue.traffic import Retry, Rules, Session, SessionGroup, Traffic, Turn

from ..helpers.exact_times import TICK_S
from ..helpers.profiles import examples
from ..helpers.recordings import differences
from .cases import FleetCase, fleet_cases, fleet_differences

THINKS = st.sampled_from([0, 0, 0, 1, 3])
ADDED = ("routed_s", "reached_s", "route_reason", "resent", "discarded_tokens")


@dataclass(frozen=True)
class Talk:
    """A fleet, and traffic whose arrivals depend on its answers."""

    case: FleetCase
    traffic: Traffic

    def play(self, *, fast: bool) -> Recording:
        """Run it."""
        return self.case.play(fast=fast, traffic=self.traffic)


class NoJitter:
    """Draws the same number for each request."""

    def __call__(self, request_id: str, attempt: int) -> float:
        """Return it."""
        return 0.5


@st.composite
def talks(draw: st.DrawFn, *, fails: bool = True) -> Talk:
    """Half of the requests are turns of sessions; the others can be retried, and wait for a concurrency limit."""
    case = draw(fleet_cases(fails=fails))
    half = len(case.requests) // 2
    turns = [
        Turn(
            draw(THINKS) * TICK_S, replace(request, arrival_s=0.0, gives_up_s=None, deadline_s=None, client=f"c{i % 2}")
        )
        for i, request in enumerate(case.requests[:half])
    ]
    sessions = tuple(Session(start * TICK_S, tuple(turns[start::2])) for start in range(2) if turns[start::2])
    groups = (SessionGroup(sessions, ends_on_failure=draw(st.booleans())),) if sessions else ()
    retry = draw(st.sampled_from([None, Retry(2, 0.0, 1.0, 0.0, NoJitter()), Retry(2, TICK_S, 2.0, 0.0, NoJitter())]))
    rules = {"pool": Rules(draw(st.sampled_from([None, 1, 2])), retry)}
    requests = [replace(request, pool="pool") for request in case.requests[half:]]
    return Talk(case, Traffic(requests, session_groups=groups, rules=rules))


@examples(100, thorough=2000)
@given(talks())
def test_folding_changes_nothing(talk: Talk) -> None:
    """The same bytes, whoever waits for whom."""
    assert fleet_differences(talk.play(fast=True), talk.play(fast=False)) == []


@examples(50, thorough=500)
@given(talks())
def test_every_request_ends_once(talk: Talk) -> None:
    """No request is served twice, and without a horizon none is left over unless a warning says so."""
    recording = talk.play(fast=True)
    ids = recording.requests["request_id"].tolist()
    assert len(set(ids)) == len(ids)
    unfinished = (recording.requests["status"] == Status.UNFINISHED.value).any()
    if talk.case.horizon_s == float("inf") and unfinished:
        assert any("can never be completed" in line for line in recording.warnings)


@examples(50, thorough=500)
@given(talks(fails=False))
def test_one_replica_is_no_fleet(talk: Talk) -> None:
    """Clients of a fleet of one see what clients of a replica see."""
    case = talk.case
    if case.router == "central_queue":
        return
    case = replace(
        case, makers=case.makers[:1], step_times=case.step_times[:1], router_request_s=0.0, router_latency_s=0.0
    )
    routed = replace(talk, case=case).play(fast=True)
    plain = Simulation(talk.traffic, case.makers[0](), case.step_times[0], case.options(fast=True)).run()
    requests = {name: column for name, column in routed.requests.items() if name not in ADDED}
    steps = {name: column for name, column in routed.steps.items() if name != "replica"}
    assert differences(replace(routed, requests=requests, steps=steps, fleet=None), plain) == []
