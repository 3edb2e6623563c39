"""``simqueue explain SCENARIO --route REQUEST_ID``: why a request went where it went."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import groupby
from typing import Any

from simqueue.cli.actions.common import load_scenario, print_json, print_warnings, say
from simqueue.cli.columns import Row, listed, terminal_width
from simqueue.experiment.routes import MOST_DECISIONS, Decision, Route, Seen, explain_route
from simqueue.routing import Choice


def explain_one_route(
    argument: str, overrides: list[str] | None, request_id: str, policy: str | None, *, as_json: bool
) -> None:
    """Print the decisions about a request, as tables or as JSON."""
    scenario = load_scenario(argument, overrides, None).resolve()
    route = explain_route(scenario, request_id, policy)
    if as_json:
        print_json(_plain(asdict(route) | {"decisions": [_json(one) for one in route.decisions]}))
        return
    print_warnings(scenario.warnings)
    for line in _lines(route):
        say(line)


def _lines(route: Route) -> Iterator[str]:
    asked = route.request
    yield (
        f"request {asked.request_id} of {route.policy}, behind {route.router}: arrives at {asked.arrival_s:.6g} s, "
        f"{asked.prompt_tokens:,} prompt tokens, {asked.output_tokens:,} output tokens"
    )
    attempt = 0
    for held, decisions in groupby(route.decisions, key=lambda one: _is_held(one.choice)):
        several = list(decisions)
        if held:
            yield from ["", *_while_held(several)]
            continue
        for one in several:
            attempt += 1
            yield from ["", *_of_attempt(attempt, one)]
    if len(route.decisions) == MOST_DECISIONS:
        yield f"the router was asked more often; the first {MOST_DECISIONS} answers are shown"
    if not route.decisions:
        yield "it never got to the router's choice"
    if route.status:
        yield f"in the end: {route.status}{f': {route.reason}' if route.reason else ''}"


def _is_held(choice: Choice) -> bool:
    return choice.replica is None and not choice.refused


def _while_held(decisions: list[Decision]) -> Iterator[str]:
    """Yield what the router said while it held the request."""
    first, last = decisions[0], decisions[-1]
    times = f"from {first.at_s:.6g} to {last.at_s:.6g} s, asked {len(decisions)} times"
    yield f"held at the router {times if len(decisions) > 1 else f'at {first.at_s:.6g} s'}: {last.choice.reason}"
    yield from _table(last)


def _of_attempt(number: int, decision: Decision) -> Iterator[str]:
    """Yield what the router chose, why, and what came of it."""
    choice = decision.choice
    names = {one.number: one.name for one in decision.replicas}
    target = "refused" if choice.replica is None else f"to {names[choice.replica]}"
    yield f"attempt {number} at {decision.at_s:.6g} s: {target}: {choice.reason}"
    yield from _table(decision)
    if decision.left_s is not None:
        served = "with its answer" if decision.served else "without its answer"
        yield f"  left it at {decision.left_s:.6g} s {served}, after {decision.tokens:,} tokens"


def _table(decision: Decision) -> Iterator[str]:
    rows = [_row(one, decision) for one in decision.replicas]
    return (f"  {line}" for line in listed(rows, terminal_width())) if rows else iter(())


def _row(one: Seen, decision: Decision) -> Row:
    """Return the line of a replica: what the router counts, what it read and how old that was, and its scores."""
    row: Row = {
        "replica": one.name,
        "chosen": "*" if one.number == decision.choice.replica else "",
        "healthy": "yes" if one.healthy else "no",
        "chance": f"{one.chance:.4g}",
        "in flight": one.in_flight,
    }
    row |= {name: f"{value:.6g}" for name, value in one.signals.items()}
    if one.signals:
        row["age (s)"] = f"{max(0.0, decision.at_s - one.seen_s):.4g}"
    return row | {f"score: {name}": "-" if math.isnan(value) else f"{value:.6g}" for name, value in one.scores.items()}


def _json(decision: Decision) -> dict[str, Any]:
    found = asdict(decision)
    return found | {"choice": decision.choice._asdict()}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: no number is infinite or NaN."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
