"""Fleets of two replicas with steps of one second, small enough to be worked out by hand.

A prompt takes the step in which it begins and gives the first token; each further token takes a step.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from simqueue.errors import RunError
from simqueue.frontend import FrontEndTimes
from simqueue.request import Request
from simqueue.routing import Age, Choice, FleetEvent, RandomFailures, Ranking, Recovery, Router, Signal
from simqueue.schedulers import Policy
from simqueue.simulation import Recording, RunOptions
from simqueue.simulation.fleet_rules import FleetRules, Part
from simqueue.simulation.simulate_fleet import FleetSimulation
from simqueue.traffic import Rules, Traffic

from ..helpers.playing import ONE_SECOND, make_policy
from .cases import fleet_differences, make_router


def policy() -> Policy:
    """Return a policy with two seats."""
    return make_policy("chunked", {"max_num_seqs": 2}, blocks=100)


def play(
    requests: list[Request] | Traffic,
    *,
    replicas: int = 2,
    router: str = "round_robin",
    front_end: FrontEndTimes | None = None,
    **rules: Any,
) -> Recording:
    """Play requests through equal replicas, and check that folding changes nothing."""
    parts = [Part(f"r-{number}", "r", 1.0, policy, ONE_SECOND, front_end) for number in range(replicas)]

    def run(*, fast: bool) -> Recording:
        how = FleetRules(router=make_router(router), random=Random, **rules)
        return FleetSimulation(requests, parts, how, RunOptions(fast=fast, check=True)).run()

    folded = run(fast=True)
    assert fleet_differences(folded, run(fast=False)) == []
    return folded


def row(recording: Recording, request: str, *names: str) -> tuple[Any, ...]:
    """Return some values of a request; None for times that do not exist."""
    index = recording.requests["request_id"].tolist().index(request)
    values = (recording.requests[name][index] for name in names)
    return tuple(None if isinstance(one, float) and np.isnan(one) else one for one in values)


def lives(recording: Recording) -> list[tuple[float, int, str]]:
    """Return the changes of states."""
    assert recording.fleet is not None
    columns = recording.fleet.lives
    return list(zip(*(columns[name].tolist() for name in ("time_s", "replica", "state")), strict=True))


A = Request("a", 0.0, 4, 6)
FAILS = (FleetEvent(2.5, 0, "fail", repair_s=10.0),)


def test_lost() -> None:
    """It has its first token at 1 s and its second at 2 s; at 2.5 s its replica fails, and its client has an error."""
    found = play([A], events=FAILS, in_flight="lose")
    assert row(found, "a", "status", "finish_s", "tokens_emitted", "last_token_s") == ("rejected", 2.5, 2, 2.0)
    assert row(found, "a", "reject_reason", "replica", "resent") == ("lost: r-0 failed", 0, 0)
    assert found.unfinished_step_s == 0.5


def test_resent_only_without_a_token() -> None:
    """At 0.5 s there is no token: it begins at the other replica and has its 6 tokens from 1.5 s to 6.5 s."""
    found = play([A], events=(FleetEvent(0.5, 0, "fail"),), in_flight="resend")
    assert row(found, "a", "status", "replica", "resent", "discarded_tokens") == ("finished", 1, 1, 0)
    assert row(found, "a", "routed_s", "first_scheduled_s", "first_token_s", "finish_s") == (0.0, 0.5, 1.5, 6.5)
    late = play([A], events=FAILS, in_flight="resend")
    assert row(late, "a", "status", "reject_reason") == ("rejected", "lost: r-0 failed")


def test_restarted() -> None:
    """All six tokens are made again from 2.5 s on; the two made before are discarded, and no part of the answer."""
    found = play([A], events=FAILS, in_flight="restart")
    assert row(found, "a", "status", "first_token_s", "finish_s", "max_itl_s") == ("finished", 3.5, 8.5, 1.0)
    assert row(found, "a", "tokens_emitted", "discarded_tokens", "resent") == (6, 2, 1)
    assert found.fleet is not None
    assert found.fleet.stays["tokens"].tolist() == [2]
    assert found.fleet.stays["kept"].tolist() == [0]


def test_resumed() -> None:
    """Two tokens are kept. Prompt and these are computed again: the third token at 3.5 s, 1.5 s after the second."""
    found = play([A], events=FAILS, in_flight="resume")
    assert row(found, "a", "status", "first_token_s", "finish_s", "max_itl_s") == ("finished", 1.0, 6.5, 1.5)
    assert row(found, "a", "tokens_emitted", "discarded_tokens", "resent") == (6, 0, 1)
    again = found.steps["prefill_tokens"][found.steps["replica"] == 1]
    assert again.tolist()[0] == 4 + 2


def test_a_second_failure() -> None:
    """Both replicas fail in turn: what each made is kept."""
    events = (FleetEvent(2.5, 0, "fail", repair_s=1.0), FleetEvent(4.5, 1, "fail"))
    found = play([A], events=events, in_flight="resume")
    # 1 s, 2 s at r-0; 3.5 s and 4.5 s at r-1, which fails when the step has ended; 5.5 s and 6.5 s at r-0
    assert row(found, "a", "tokens_emitted", "finish_s", "replica", "resent") == (6, 6.5, 0, 2)
    assert lives(found)[2:] == [(2.5, 0, "failed"), (3.5, 0, "ready"), (4.5, 1, "failed")]


def test_attempts_are_limited_and_wait() -> None:
    """No replica is ready from 0.5 s on. With waits of 1, 2 and 4 s the third attempt finds one that is back."""
    events = (FleetEvent(0.5, 0, "fail", repair_s=5.0),)
    waits = {"first_wait_s": 1.0, "wait_factor": 2.0, "longest_wait_s": 60.0}
    found = play([A], replicas=1, events=events, recovery=Recovery(retries=3, **waits))
    # lost at 0.5; attempts at 1.5, 3.5 and 7.5
    assert row(found, "a", "status", "first_scheduled_s", "resent") == ("finished", 7.5, 1)
    given_up = play([A], replicas=1, events=events, recovery=Recovery(retries=2, **waits))
    assert row(given_up, "a", "status", "finish_s", "reject_reason") == ("rejected", 3.5, "no replica is ready")
    short = play([A], replicas=1, events=events, recovery=Recovery(retries=9, **waits | {"longest_wait_s": 1.0}))
    assert row(short, "a", "first_scheduled_s") == (5.5,)


def test_a_replica_that_drains_ends_what_it_has() -> None:
    """It gets nothing from 1.5 s on, finishes at 6 s and is gone."""
    later = [Request(name, 2.0, 4, 1) for name in "bc"]
    found = play([A, *later], events=(FleetEvent(1.5, 0, "drain"),))
    assert row(found, "a", "replica", "finish_s", "resent") == (0, 6.0, 0)
    assert [row(found, name, "replica") for name in "bc"] == [(1,), (1,)]
    assert lives(found)[2:] == [(1.5, 0, "draining"), (6.0, 0, "gone")]
    assert found.fleet is not None
    assert [one.ready_s for one in found.fleet.replicas] == [6.0, 6.0]


def test_a_drain_has_a_deadline() -> None:
    """At 1.5 + 2 s three tokens are made; they are kept, and the other three are made elsewhere."""
    events = (FleetEvent(1.5, 0, "drain", deadline_s=2.0),)
    found = play([A], events=events, in_flight="resume")
    assert row(found, "a", "finish_s", "replica", "tokens_emitted") == (6.5, 1, 6)
    assert lives(found)[2:] == [(1.5, 0, "draining"), (3.5, 0, "gone")]


def test_a_replica_that_starts_later() -> None:
    """Until 3 s there is one replica; the request at 3 s is the second one's turn."""
    requests = [Request(name, at_s, 4, 1) for name, at_s in (("a", 0.0), ("b", 1.0), ("c", 3.0))]
    found = play(requests, events=(FleetEvent(3.0, 1, "start"),))
    # round robin counts its decisions: 2 modulo 2 replicas is the first again
    assert [row(found, name, "replica")[0] for name in "abc"] == [0, 0, 0]
    assert lives(found)[:3] == [(0.0, 0, "ready"), (0.0, 1, "absent"), (3.0, 1, "ready")]


def test_health_checks_take_their_time() -> None:
    """Checks every 4 s with a timeout of 1 s: two failed ones are known at 9 s, two good ones at 24 s.

    Until then round robin sends every second request to the replica that is down; such attempts fail at once.
    """
    events = (FleetEvent(0.5, 0, "fail", repair_s=17.0),)
    checks = Recovery(retries=1, check_every_s=4.0, check_timeout_s=1.0, check_failures=2, check_successes=2)
    requests = [Request(str(at), float(at), 4, 1) for at in range(1, 30)]
    found = play(requests, events=events, recovery=checks)
    assert found.fleet is not None
    resent_to = found.requests["replica"]
    attempts = dict(zip(found.requests["request_id"].tolist(), resent_to.tolist(), strict=True))
    # up at 17.5 s; checks at 20 and 24 s
    assert all(attempts[str(at)] == 1 for at in range(1, 24))
    assert 0 in {attempts[str(at)] for at in range(24, 30)}
    assert set(found.requests["status"]) == {"finished"}


def test_a_breaker_opens_and_closes() -> None:
    """Two failed attempts in a row open it for 5 s; then one answer closes it."""
    checks = Recovery(
        retries=1,
        check_every_s=1000.0,
        breaker_failures=2,
        breaker_window_s=100.0,
        breaker_open_s=5.0,
        breaker_successes=1,
    )
    requests = [Request(str(at), float(at), 4, 1) for at in range(1, 20)]
    found = play(
        requests, router="least_outstanding", events=(FleetEvent(0.5, 0, "fail", repair_s=4.0),), recovery=checks
    )
    assert set(found.requests["status"]) == {"finished"}
    replicas = found.requests["replica"].tolist()
    opened = [at for at, replica in zip(range(1, 20), replicas, strict=True) if replica == 0]
    assert opened
    assert min(opened) >= 5


@pytest.mark.parametrize(("latency_s", "work_s", "starts_s"), [(0.25, 0.0, (0.25, 0.25)), (0.0, 0.5, (0.5, 1.0))])
def test_the_router_takes_time(latency_s: float, work_s: float, starts_s: tuple[float, float]) -> None:
    """Requests do not wait for each other's latency; work is one request at a time."""
    pair = [Request("a", 0.0, 4, 1), Request("b", 0.0, 4, 1)]
    found = play(pair, router_latency_s=latency_s, router_request_s=work_s)
    assert tuple(found.requests["first_scheduled_s"].tolist()) == starts_s


def test_signals_have_an_age() -> None:
    """Looked at every 10 s and known 1 s later: at 5 s both replicas seem empty, so the first one gets everything.

    Live, the second request goes to the empty replica.
    """
    pair = [Request("a", 0.0, 4, 8), Request("b", 5.0, 4, 1), Request("c", 12.0, 4, 1), Request("d", 13.0, 4, 1)]
    first = {"router": "join_shortest_queue"}
    live = play(pair, **first)
    assert row(live, "a", "replica") != row(live, "b", "replica")
    stale = {signal: Age(10.0, 1.0) for signal in (Signal.RUNNING, Signal.WAITING)}
    found = play([Request("a", 0.0, 4, 30), *pair[1:]], ages=stale, **first)
    # the look at 10 s sees a: at 12 and 13 s requests go to the other replica
    other = 1 - row(found, "a", "replica")[0]
    assert [row(found, name, "replica")[0] for name in "cd"] == [other, other]


def test_one_queue_for_all() -> None:
    """Two replicas with two seats each: the fifth request waits at the router until the first has left."""
    requests = [Request(str(index), 0.0, 4, 2 + index) for index in range(5)]
    found = play(requests, router="central_queue")
    assert row(found, "4", "routed_s", "first_scheduled_s") == (2.0, 2.0)
    assert row(found, "4", "replica") == row(found, "0", "replica")


def test_clients_react_after_all_steps_of_the_instant() -> None:
    """At 3 s one request at each replica ends. The third waits for the first by its client's limit of one.

    Replica 0 has a longer request too: the one that ends there later does not count, the one that has ended at replica
    1 must not count any more, whichever of the two replicas its predecessor was at.
    """
    requests = [
        Request("first", 0.0, 4, 3, pool="one"),
        Request("other", 0.0, 4, 3),
        Request("long", 0.0, 4, 9),
        Request("next", 0.5, 4, 2, pool="one"),
    ]
    traffic = Traffic(requests, rules={"one": Rules(max_concurrency=1)})
    found = play(traffic, router="least_outstanding")
    free = 1 - row(found, "long", "replica")[0]
    assert row(found, "next", "first_scheduled_s", "replica") == (3.0, free)


def test_a_request_whose_tokens_are_all_made_is_served() -> None:
    """Padded waves keep the short request until the long one ends; it has its tokens, and is not sent again."""

    def waves() -> Policy:
        return make_policy("static", {"max_num_seqs": 2, "release": "wave_end", "emit": "as_made"}, blocks=100)

    pair = [Request("short", 0.0, 4, 2), Request("long", 0.0, 4, 20)]
    parts = [Part("r-0", "r", 1.0, waves, ONE_SECOND)]
    events = (FleetEvent(8.5, 0, "fail", repair_s=1.0),)
    how = FleetRules(router=make_router("central_queue"), random=Random, events=events, in_flight="resume")
    found = FleetSimulation(pair, parts, how, RunOptions(check=True)).run()
    assert row(found, "short", "status", "finish_s", "resent", "tokens_emitted") == ("finished", 8.5, 0, 2)
    assert row(found, "long", "status", "tokens_emitted") == ("finished", 20)


def test_an_answer_that_its_client_will_not_see_times_out() -> None:
    """Made by 2 s, on its way for 10 s, and the client gives up at 6 s: a failure in between changes nothing."""
    slow = FrontEndTimes(first_token_s=10.0)
    request = Request("a", 0.0, 4, 2, gives_up_s=6.0)
    for mode in ("lose", "resend", "restart", "resume"):
        found = play([request], events=(FleetEvent(4.5, 0, "fail"),), in_flight=mode, front_end=slow)
        assert row(found, "a", "status", "finish_s", "tokens_emitted", "resent") == ("timed_out", 6.0, 2, 0)


def test_a_resumed_answer_is_seen_when_its_first_token_arrives() -> None:
    """The first token is made at 1 s and seen at 6 s; the others follow from the second replica, in time."""
    slow = FrontEndTimes(first_token_s=5.0)
    request = Request("a", 0.0, 4, 8, gives_up_s=10.0)
    found = play([request], events=(FleetEvent(6.5, 0, "fail"),), in_flight="resume", front_end=slow)
    assert row(found, "a", "status", "finish_s", "first_token_delay_s") == ("finished", 8.5, 5.0)


def test_planned_events_happen_to_replicas_that_are_down() -> None:
    """Down from 1 s to 21 s. A drain at 5 s: it does not come back. A failure at 5 s for 2 s: it is back at 7 s."""
    down = FleetEvent(1.0, 0, "fail", repair_s=20.0)
    late = [Request("late", 30.0, 4, 1)]
    drained = play(late, events=(down, FleetEvent(5.0, 0, "drain")))
    assert lives(drained)[2:] == [(1.0, 0, "failed"), (5.0, 0, "gone")]
    again = play(late, events=(down, FleetEvent(5.0, 0, "fail", repair_s=2.0)))
    assert lives(again)[2:] == [(1.0, 0, "failed"), (7.0, 0, "ready")]
    for_good = play(late, events=(down, FleetEvent(5.0, 0, "fail")))
    assert lives(for_good)[2:] == [(1.0, 0, "failed")]


def test_an_old_repair_does_not_end_a_later_failure() -> None:
    """Started at 4 s while down, it fails again at 6 s for 100 s: the repair that was meant for 11 s is off."""
    events = (FleetEvent(1.0, 0, "fail", repair_s=10.0), FleetEvent(4.0, 0, "start"), FleetEvent(6.0, 0, "fail", 100.0))
    found = play([Request("late", 30.0, 4, 1)], events=events)
    assert lives(found)[2:] == [(1.0, 0, "failed"), (4.0, 0, "ready"), (6.0, 0, "failed")]


def test_a_replica_that_drains_ends_its_step() -> None:
    """Its only request times out at 2.5 s, in a step that ends at 3 s: it leaves then, and so does the replica."""
    impatient = Request("a", 0.0, 4, 6, gives_up_s=2.5)
    found = play([impatient, Request("late", 9.0, 4, 1)], events=(FleetEvent(1.5, 0, "drain"),))
    assert row(found, "a", "status", "finish_s") == ("timed_out", 3.0)
    assert lives(found)[2:] == [(1.5, 0, "draining"), (3.0, 0, "gone")]
    assert found.unfinished_step_s is None


class Never(Router):
    """Holds every request for ever."""

    def rank(self, request: Request, replicas: Any, now_s: float) -> Ranking:
        """Choose no replica."""
        return Ranking({}, "never")


def test_failures_that_help_nobody_end() -> None:
    """Thirty replicas that fail and come back for ever do not keep a run going whose request no replica gets."""
    parts = [Part(f"r-{number}", "r", 1.0, policy, ONE_SECOND) for number in range(30)]
    how = FleetRules(Never(None, Random(1)), Random, failures=RandomFailures(10.0, 10.0))  # type: ignore[arg-type] # no keys
    found = FleetSimulation([A], parts, how, RunOptions(check=True)).run()
    assert row(found, "a", "status") == ("unfinished",)
    assert any("can never be completed" in line for line in found.warnings)


@pytest.mark.parametrize("number", [-1, 2, "0", 1.0, True])
def test_a_router_that_chooses_nonsense_is_named(number: Any) -> None:
    """Not the number of a healthy replica: the error says which router chose what."""

    class Wrong(Never):
        def choose(self, request: Request, replicas: Any, now_s: float) -> Choice:
            return Choice(number, "wrong")

    parts = [Part(f"r-{place}", "r", 1.0, policy, ONE_SECOND) for place in range(2)]
    how = FleetRules(Wrong(None, Random(1)), Random)  # type: ignore[arg-type] # no keys
    with pytest.raises(RunError, match=r"Wrong: chooses .* must be a healthy replica, one of 0, 1"):
        FleetSimulation([A], parts, how, RunOptions()).run()
