"""Why a request went where it went: the decisions of a run, without changing it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import simqueue as sq
from simqueue.cli import run_command
from simqueue.errors import InputError
from simqueue.experiment.routes import Route, explain_route
from simqueue.scenario import from_mapping

STEP_S = 0.125
TRAFFIC = {
    "arrivals": {"process": "poisson", "rate_rps": 12},
    "num_requests": 40,
    "prompt_tokens": {"distribution": "uniform", "low": 1, "high": 60},
    "output_tokens": {"distribution": "uniform", "low": 1, "high": 6},
}
Capture = pytest.CaptureFixture[str]


def scenario(fleet: Any, *requests: tuple[float, int], **keys: Any) -> dict[str, Any]:
    """Return a scenario with a fleet, in which a request of n output tokens that runs at once takes n steps."""
    asked = [{"arrival_s": at_s, "prompt_tokens": 10, "output_tokens": output} for at_s, output in requests]
    return {
        "step_time": {"kind": "constant", "seconds": STEP_S},
        "kv_cache": {"blocks": 40, "block_size": 16},
        "workload": {"requests": asked},
        "policies": {"p": {"scheduler": "continuous", "max_num_seqs": 2, "fleet": fleet}},
        **keys,
    }


def route_of(asked: dict[str, Any], request_id: str, policy: str | None = None) -> Route:
    """Return the way of a request."""
    return explain_route(from_mapping(asked).resolve(), request_id, policy)


def test_a_decision_has_what_the_router_counts_and_thinks() -> None:
    """Two requests are at the first replica and one at the second when the fourth arrives."""
    fleet = {"replicas": 3, "router": {"kind": "least_outstanding", "ties": "first"}}
    asked = scenario(fleet, (0, 20), (0, 20), (0, 1), (0.0625, 20), (0.25, 4))
    (decision,) = route_of(asked, "4").decisions
    assert decision.at_s == 0.25
    assert decision.choice[:2] == (2, "least loaded")
    assert [one.in_flight for one in decision.replicas] == [2, 1, 0]
    assert [dict(one.scores) for one in decision.replicas] == [{"in_flight": n} for n in (2, 1, 0)]
    assert [one.chance for one in decision.replicas] == [0, 0, 1]
    assert (decision.left_s, decision.served, decision.tokens) == (0.75, True, 4)


@pytest.mark.parametrize("router", ["random", "power_of_two", "least_kv", "join_shortest_queue", "prefix_affinity"])
def test_asking_changes_nothing(router: str) -> None:
    """What is said of some requests is what the table of the run says, also if the router draws random numbers."""
    asked = scenario({"replicas": 3, "router": router, "signals": {"every_s": 0.4}}, workload=TRAFFIC)
    table = sq.run(asked).requests
    for place in (0, 13, 39):
        row = table.iloc[place]
        last = route_of(asked, row["request_id"]).decisions[-1]
        assert (last.choice.replica, last.left_s) == (row["replica"], pytest.approx(row["finish_s"]))


def test_signals_have_the_age_that_they_had() -> None:
    """Looks at 0 and 1 s: a request at 0.75 s is placed by an empty pool, and the look is 0.75 s old."""
    asked = scenario({"replicas": 2, "router": "least_kv", "signals": {"every_s": 1}}, (0.25, 20), (0.75, 1))
    (decision,) = route_of(asked, "1").decisions
    assert [(dict(one.signals), one.seen_s) for one in decision.replicas] == [({"kv_used": 0.0}, 0.0)] * 2


def test_every_attempt_is_there() -> None:
    """A replica fails in the third step of a request: the second decision is at that time, and leads elsewhere."""
    events = [{"at_s": 0.3125, "replica": "replica-0", "event": "fail"}]
    asked = scenario({"replicas": 2, "events": events, "in_flight": "restart"}, (0, 4))
    first, second = route_of(asked, "0").decisions
    assert (first.choice.replica, first.left_s, first.served, first.tokens) == (0, 0.3125, False, 2)
    assert (second.at_s, second.choice.replica, second.served) == (0.3125, 1, True)
    assert [one.healthy for one in second.replicas] == [False, True]


def test_a_lost_request_says_how_it_ended() -> None:
    """Without a second attempt there is one decision, and the reason of the end."""
    events = [{"at_s": 0.3125, "replica": "replica-0", "event": "fail"}]
    route = route_of(scenario({"replicas": 2, "events": events, "in_flight": "lose"}, (0, 4)), "0")
    assert (len(route.decisions), route.status, route.reason) == (1, "rejected", "lost: replica-0 failed")


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Write a scenario of one seat behind a central queue, and a policy without a fleet."""
    asked = scenario({"replicas": 2, "router": "central_queue"}, (0, 4), (0, 8), (0, 2), (0, 3), (0.0625, 2))
    asked["policies"]["alone"] = {"scheduler": "continuous"}
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps(asked), encoding="utf-8")
    return str(path)


def test_the_command_shows_the_wait_at_the_router(file: str, capsys: Capture) -> None:
    """All four seats are taken at first; then the request goes where the first one is free."""
    assert run_command(["explain", file, "--route", "4"]) == 0
    text = capsys.readouterr().out
    assert "request 4 of p, behind central_queue: arrives at 0.0625 s, 10 prompt tokens, 2 output tokens" in text
    assert "held at the router" in text
    chosen = text.partition("attempt 1 at 0.25 s: to ")[2]
    rows = {line.split()[0]: line.split()[1:] for line in chosen.splitlines() if line.startswith("  replica-")}
    freed = rows.pop(chosen.partition(":")[0])
    assert freed[:4] == ["*", "yes", "1", "1"]
    assert [words[:3] for words in rows.values()] == [["yes", "0", "2"]]
    assert "left it at 0.5 s with its answer, after 2 tokens" in text


def test_the_command_gives_json(file: str, capsys: Capture) -> None:
    """The same as one object."""
    assert run_command(["explain", file, "--route", "0", "--policy", "p", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["policy"], found["router"], found["request"]["request_id"]) == ("p", "central_queue", "0")
    (decision,) = found["decisions"]
    assert decision["choice"]["replica"] == 0
    assert [one["name"] for one in decision["replicas"]] == ["replica-0", "replica-1"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--route", "44"], "--route: unknown request '44' in the run of 'p'; did you mean '4'? known: 0, 1, 2, 3, 4"),
        (["--route", "0", "--policy", "q"], "--policy: unknown policy 'q'; known: p, alone"),
        (["--route", "0", "--policy", "alone"], "--policy alone: has no fleet; policies with one: p"),
        (["--policy", "p"], "--policy p: is for --route REQUEST_ID"),
    ],
)
def test_what_cannot_be_shown(arguments: list[str], line: str, file: str, capsys: Capture) -> None:
    """Unknown names are one line."""
    assert run_command(["explain", file, *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"error: {line}")


def test_a_way_needs_a_scenario_and_a_fleet(capsys: Capture) -> None:
    """Without a scenario, or without any fleet, the error says what is missing."""
    assert run_command(["explain", "--route", "0"]) == 2
    assert "give a scenario" in capsys.readouterr().err
    with pytest.raises(InputError, match="no policy has a fleet"):
        route_of(scenario(None, (0, 1)), "0")


def test_a_request_that_no_router_saw_says_so() -> None:
    """It is longer than any pool, behind a router that has no replica yet."""
    start = [
        {"at_s": 100, "replica": "replica-0", "event": "start"},
        {"at_s": 100, "replica": "replica-1", "event": "start"},
    ]
    route = route_of(scenario({"replicas": 2, "events": start}, (0, 1)), "0")
    assert not route.decisions
    assert (route.status, route.reason) == ("rejected", "no replica is ready")
    assert route.request.output_tokens == 1
