"""What every router of a product keeps to, whatever the replicas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from simqueue.request import Request
from simqueue.routing import ROUTERS, Router

from ..helpers.profiles import examples
from .replicas import Replica, fleets, made, p_value, replicas

KINDS = ("dynamo", "litellm", "llm-d", "production-stack", "aibrix", "envoy", "nginx")
SCORERS = ["queue", "running-requests-size", "kv-cache-utilization", "load-aware", "active-request", "token-load"]
ALWAYS: list[tuple[str, dict[str, Any]]] = [
    ("dynamo", {}),
    ("dynamo", {"use_kv_events": False, "router_ttl_secs": 3.0}),
    ("dynamo", {"router_temperature": 0.5, "overlap_score_credit_decay": 1.0, "decode_active_request_weight": 2.0}),
    *(("dynamo", {"router_mode": mode}) for mode in ("round-robin", "random", "power-of-two", "least-loaded")),
    ("litellm", {}),
    *(("litellm", {"routing_strategy": f"{name}"}) for name in ("least-busy", "latency-based-routing")),
    ("litellm", {"routing_strategy": "usage-based-routing-v2"}),
    ("llm-d", {}),
    *(("llm-d", {"picker": f"{name}-picker"}) for name in ("weighted-random", "random")),
    *(("llm-d", {"scorers": {f"{name}-scorer": 1}}) for name in SCORERS),
    ("llm-d", {"scorers": {"prefix-cache-scorer": 1, "no-hit-lru-scorer": 1}, "picker": "weighted-random-picker"}),
    ("llm-d", {"prefix-cache-affinity-filter": {"explorationProbability": 0.3, "maxTokensInFlightPenalty": 100}}),
    *(("production-stack", {"routing_logic": name}) for name in ("roundrobin", "session", "prefixaware", "kvaware")),
    ("production-stack", {"routing_logic": "prefixaware", "prefix_min_match_length": 256}),
    *(("aibrix", {"routing_strategy": name}) for name in ("random", "prefix-cache", "least-request", "power-of-two")),
    ("aibrix", {"routing_strategy": "least-kv-cache"}),
    ("envoy", {}),
    *(("envoy", {"lb_policy": name}) for name in ("LEAST_REQUEST", "RANDOM", "RING_HASH")),
    ("envoy", {"lb_policy": "LEAST_REQUEST", "choice_count": 5, "active_request_bias": 0.5}),
    ("envoy", {"lb_policy": "MAGLEV", "table_size": 101}),
    *(("nginx", {"method": f"{name}"}) for name in ("round_robin", "least_conn", "random", "hash consistent")),
    ("nginx", {"method": "random two least_conn"}),
]
ROUTER = st.sampled_from(ALWAYS)
PROMPT = st.tuples(st.integers(0, 1), st.integers(1, 150))


def asked(name: str, stream: int, tokens: int) -> Request:
    """Return a request of one of two sessions, or of none, with a prompt of one of two streams."""
    session = [None, "s", "t"][tokens % 3]
    return Request(name, 0.0, tokens, 10, prompt=((stream, 0, tokens),), session=session)


class Life:
    """A router, told of requests that come, start and end."""

    def __init__(self, kind: str, keys: dict[str, Any], seen: list[Replica]) -> None:
        self.router = made(kind, 1, **keys)
        self.seen = {one.number: one for one in seen}
        self.order = seen
        self.inside: list[tuple[Request, Replica, bool]] = []
        self.now_s = 0.0

    def send(self, request: Request) -> None:
        """Send it to the first replica that has a chance."""
        ranking = self.router.rank(request, self.order, self.now_s)
        chosen = self.seen[next(iter(ranking.chances))]
        self.router.dispatched(request, chosen, self.now_s)
        chosen.in_flight += 1
        self.inside.append((request, chosen, False))

    def go_on(self, at: int, how: str) -> None:
        """Let a request make its first token, end, or fail."""
        if not self.inside:
            return
        request, replica, begun = self.inside.pop(at % len(self.inside))
        if how == "first" or (how == "end" and not begun):
            if self.router.wants_first_tokens and not begun:
                self.router.first_token(request, replica, self.now_s)
            begun = True
        if how == "first":
            self.inside.append((request, replica, begun))
            return
        replica.in_flight -= 1
        self.router.finished(request, replica, self.now_s, tokens=10 if begun else 0, served=how == "end")


STEP = st.tuples(st.sampled_from(["send", "first", "end", "fail", "down", "up", "new"]), st.integers(0, 20), PROMPT)


def live(life: Life, steps: list[tuple[str, int, tuple[int, int]]]) -> None:
    """Go through these steps, two a second; at least one replica stays healthy."""
    for i, (what, at, prompt) in enumerate(steps):
        life.now_s += 0.5
        replica = life.order[at % len(life.order)]
        if what == "send":
            life.send(asked(str(i), *prompt))
        elif what == "down":
            replica.healthy = sum(one.healthy for one in life.order) == 1 and replica.healthy
        elif what == "up":
            replica.healthy = True
        elif what == "new":
            life.router.joined(replica, life.now_s)
        else:
            life.go_on(at, what)


@examples(80, 3000)
@given(router=ROUTER, seen=fleets(), steps=st.lists(STEP, max_size=25), prompt=PROMPT)
def test_chances_are_of_healthy_replicas_and_choices_have_chances(
    router: tuple[str, dict[str, Any]], seen: list[Replica], steps: list, prompt: tuple[int, int]
) -> None:
    """Chances are positive, add up to 1 and are of healthy replicas only; a choice is one of them, for that reason."""
    life = Life(*router, seen)
    live(life, steps)
    request = asked("asked", *prompt)
    ranking = life.router.rank(request, life.order, life.now_s)
    choice = life.router.choose(request, life.order, life.now_s)
    assert sum(ranking.chances.values()) == pytest.approx(1)
    assert min(ranking.chances.values()) > 0
    assert ranking.chances.keys() <= {replica.number for replica in seen if replica.healthy}
    assert choice.replica in ranking.chances
    assert choice.reason == ranking.reason


@examples(60, 2000)
@given(router=ROUTER, seen=fleets(), steps=st.lists(STEP, max_size=25), prompt=PROMPT, asks=st.integers(1, 3))
def test_questions_change_nothing(
    router: tuple[str, dict[str, Any]], seen: list[Replica], steps: list, prompt: tuple[int, int], asks: int
) -> None:
    """Asked twice, a router says the same; a choice in between changes nothing."""
    life = Life(*router, seen)
    live(life, steps)
    request = asked("asked", *prompt)
    before = life.router.rank(request, life.order, life.now_s)
    for _ in range(asks):
        life.router.choose(asked("other", 1 - prompt[0], 70), life.order, life.now_s)
    assert life.router.rank(request, life.order, life.now_s) == before


@examples(30, 800)
@given(router=ROUTER, seen=fleets(), steps=st.lists(STEP, max_size=25))
def test_the_same_steps_lead_to_the_same_choice(
    router: tuple[str, dict[str, Any]], seen: list[Replica], steps: list
) -> None:
    """Nothing but the steps counts: two routers that lived through the same say the same."""
    healthy = [one.healthy for one in seen]
    first = Life(*router, seen)
    live(first, steps)
    loads = [one.in_flight for one in seen]
    ranking = first.router.rank(asked("asked", 0, 100), seen, first.now_s)
    for one, up in zip(seen, healthy, strict=True):
        one.healthy = up
    for request, replica, _ in first.inside:
        del request
        replica.in_flight -= 1
    second = Life(*router, seen)
    live(second, steps)
    assert [one.in_flight for one in seen] == loads
    assert second.router.rank(asked("asked", 0, 100), seen, second.now_s) == ranking


@pytest.mark.parametrize(("kind", "keys"), ALWAYS, ids=str)
def test_choices_have_the_frequencies_of_their_chances(kind: str, keys: dict[str, Any]) -> None:
    """800 choices do not differ from the chances (chi-square), with ties, weights and replicas that are down."""
    weights = [1, 2, 1, 3, 1, 1, 0.5]
    for weight in (weights, [1] * 7):
        seen = replicas(
            7,
            weight=weight,
            healthy=[True, True, False, True, True, True, True],
            in_flight=[2, 0, 0, 0, 1, 2, 5],
            in_flight_tokens=[10, 1, 0, 2, 2000, 5, 500000],
            running=[1, 1, 1, 2, 2, 3, 3],
            waiting=[0, 0, 0, 0, 0, 0, 1],
            kv_used=[0.5, 0.25, 0.0, 0.25, 0.25, 1.0, 0.5],
        )
        life = Life(kind, keys, seen)
        live(life, [("send", 0, (0, 96)), ("send", 0, (0, 90)), ("first", 0, (0, 1)), ("send", 0, (1, 33))])
        assert p_value(life.router, seen, asked("asked", 0, 150), 800) > 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_key_or_value_is_told_with_the_nearest(kind: str) -> None:
    """A misspelt key is an error that names the key."""
    with pytest.raises(ValidationError, match="unknown key 'colour'"):
        ROUTERS[kind].Settings.model_validate({"colour": "red"})


@pytest.mark.parametrize("kind", KINDS)
def test_each_says_what_it_is_and_what_it_was_checked_against(kind: str) -> None:
    """A line of summary, and what the rule was checked against."""
    cls: type[Router] = ROUTERS[kind]
    assert 20 < len(cls.summary) < 110
    assert len(getattr(cls, "checked", "")) > 5
