"""The keys of a fleet: what each of them can be, and the one line that says what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.errors import InputError
from simqueue.routing import ROUTERS
from simqueue.scenario import from_mapping

from .fleets import KEYS, Sticky, complaint, resolved

TWO = {"replicas": 2}


@pytest.mark.parametrize(
    ("fleet", "line"),
    [
        ({"replicas": 0}, "fleet.replicas = 0: must be >= 1"),
        ({"replicas": 10_001}, "fleet.replicas = 10001: must be <= 10000"),
        ({"replicas": 1.5}, "fleet.replicas = 1.5: must be a whole number >= 1 and <= 10000"),
        ({}, "fleet.replicas: this key is missing; give replicas or groups"),
        ({"groups": {}}, "fleet.groups: must have at least 1 entry"),
        ({**TWO, "groups": {"a": {}}}, "fleet.groups: cannot be combined with replicas; give one of the two"),
        ({"groups": {"a.b": {}}}, "fleet.groups.a.b: the name of a group must be letters, digits, '_' and '-', "),
        ({"groups": {"a": {"weight": 0}}}, "fleet.groups.a.weight = 0: must be > 0"),
        ({"groups": {"a": {"replicas": 9_000}, "b": {"replicas": 1_001}}}, "fleet.groups: can have up to 10,000 "),
        ({**TWO, "router": "rond_robin"}, "fleet.router = 'rond_robin': unknown router 'rond_robin'; did you mean 'ro"),
        ({**TWO, "router": {"kind": "rand"}}, "fleet.router.kind = 'rand': unknown router 'rand'; did you mean 'rando"),
        ({**TWO, "router": {"kin": "random"}}, "fleet.router.kin: unknown key 'kin'; did you mean 'kind'?"),
        ({**TWO, "router": {}}, "fleet.router.kind: this key is missing; known routers: "),
        ({**TWO, "router": {"kind": 3}}, "fleet.router.kind = 3: must be text"),
        ({**TWO, "router": 3}, "fleet.router = 3: must be a name or a mapping"),
        ({**TWO, "router": {"kind": "random", "seed": 3}}, "fleet.router.seed: unknown key 'seed'; known: kind"),
        ({**TWO, "router_order": "sorted"}, "fleet.router_order = 'sorted': must be listed or shuffled"),
        (
            {**TWO, "router_order": ["replica-0"]},
            "fleet.router_order: must name every replica once; missing: replica-1",
        ),
        (
            {**TWO, "router_order": ["replica-1", "replica-2"]},
            "fleet.router_order.1 = 'replica-2': unknown replica 'replica-2'; did you mean ",
        ),
        (
            {**TWO, "signals": {"cached": {}}},
            "fleet.signals.cached: unknown key 'cached'; known: delay_s, every_s, kv_",
        ),
        ({**TWO, "signals": {"kv_used": {"every_s": -1}}}, "fleet.signals.kv_used.every_s = -1: must be >= 0"),
        ({**TWO, "router_time": {"request_ms": -1}}, "fleet.router_time.request_ms = -1: must be >= 0"),
        ({**TWO, "in_flight": "los"}, "fleet.in_flight = 'los': must be lose, resend, restart or resume; did you mean"),
        ({**TWO, "retries": {"limit": -1}}, "fleet.retries.limit = -1: must be >= 0"),
        (
            {**TWO, "retries": {"wait_ms": 2, "longest_ms": 1}},
            "fleet.retries.longest_ms = 1.0: must be at least wait_ms = 2",
        ),
        ({**TWO, "health": "never"}, "fleet.health = 'never': must be a mapping or 'at once'"),
        ({**TWO, "health": {"every_s": 0}}, "fleet.health.every_s = 0: must be > 0"),
        ({**TWO, "health": 3}, "fleet.health = 3: must be a mapping or 'at once'"),
        ({**TWO, "breaker": "at once"}, "fleet.breaker = 'at once': must be a mapping or 'none'"),
        ({**TWO, "failures": {"mtbf_s": 0, "repair_s": 1}}, "fleet.failures.mtbf_s = 0: must be > 0"),
        ({**TWO, "failures": {"mtbf_s": 1}}, "fleet.failures.repair_s: this key is missing"),
        ({**TWO, "role": "prefill"}, "fleet.role: unknown key 'role'"),
        ({**TWO, "autoscaler": {}}, "fleet.autoscaler: unknown key 'autoscaler'"),
    ],
)
def test_one_line_per_mistake(fleet: Any, line: str) -> None:
    """A key that is wrong is one line with its path, its value and what is allowed."""
    (found,) = complaint(fleet)
    assert found.startswith(line)


@pytest.mark.parametrize(
    ("group", "line"),
    [
        (
            {"replica": 2},
            "fleet.groups.a.replica: unknown key 'replica'; did you mean 'replicas'? known: chunk_tokens, ",
        ),
        ({"fleet": None}, "fleet.groups.a.fleet: unknown key 'fleet'"),
        ({"role": "prefill"}, "fleet.groups.a.role: unknown key 'role'"),
        ({"max_num_seqs": 0}, "fleet.groups.a.max_num_seqs = 0: must be >= 1"),
        ({"max_num_seqs": "x"}, "fleet.groups.a.max_num_seqs = 'x': must be a whole number >= 1 and <= 1e+06"),
        ({"n_ctx": 3}, "fleet.groups.a.n_ctx: unknown key 'n_ctx'"),
        (
            {"kv_cache": {"block": 3}},
            "fleet.groups.a.kv_cache.block: unknown key 'block'; did you mean 'block_size' or 'blocks'",
        ),
        ({"kv_cache": 3}, "fleet.groups.a.kv_cache = 3: must be a mapping"),
        ({"scheduler": "chunkd"}, "fleet.groups.a.scheduler = 'chunkd': unknown scheduler 'chunkd'; did you mean 'chu"),
        ({"engine": "vllm"}, "fleet.groups.a.version: this key is missing"),
        (
            {"engine": "vllm", "scheduler": "static"},
            "fleet.groups.a.engine = 'vllm': a policy has either 'scheduler' or",
        ),
        ({"gpu": "h100-smx"}, "fleet.groups.a.gpu = 'h100-smx': unknown gpu 'h100-smx'; did you mean 'h100-sxm'?"),
        ({"gpu": None}, "fleet.groups.a.step_time: this key is missing; give step_time, or 'gpu' for the roofline"),
        ({"step_time": {"kind": "linear"}}, "fleet.groups.a.step_time: a step could take no time"),
        ({"gpu": None, "step_time": {"kind": "roofline"}}, "fleet.groups.a.step_time.kind = 'roofline': the roofline "),
        ({"gpu": None, "step_time": {"kind": "constant", "seconds": 1}}, "kv_cache.blocks: 'auto' needs 'gpu'"),
    ],
)
def test_the_keys_of_a_group_are_checked_as_those_of_a_policy(group: Any, line: str) -> None:
    """A wrong key of a group is reported at the group, with the keys that a policy and a group can have."""
    found = complaint({"groups": {"a": group, "b": {}}})
    assert found[0].startswith(line)


def test_mistakes_of_a_policy_are_not_those_of_its_groups() -> None:
    """What a group inherits is reported once, where it was written."""
    (line,) = complaint({"groups": {"a": {}, "b": {}}}, max_num_seqs=0)
    assert line.startswith("max_num_seqs = 0: must be >= 1")


def test_a_fleet_of_the_scenario_is_reported_at_its_place() -> None:
    """A mistake in a fleet that several policies share is one line, at the top level."""
    policies = {"p": KEYS["policies"]["p"], "q": {"scheduler": "continuous"}}
    with pytest.raises(InputError) as caught:
        from_mapping({**KEYS, "policies": policies, "fleet": {"groups": {"a": {"max_num_seqs": 0}, "b": {"kind": 1}}}})
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("fleet.groups.a.max_num_seqs = 0: must be >= 1")
    assert lines[1].startswith("fleet.groups.b.kind: unknown key 'kind'")


def test_groups_are_limited_over_all_policies() -> None:
    """Policies that share a fleet of many groups are refused: each group of each policy is resolved by itself."""
    policies = {f"p{i}": KEYS["policies"]["p"] for i in range(501)}
    with pytest.raises(
        InputError, match=r"^fleet\.groups: all policies together can have up to 1,000 groups; .* 1,002$"
    ):
        from_mapping({**KEYS, "policies": policies, "fleet": {"groups": {"a": {}, "b": {}}}})


def test_every_unknown_key_of_a_group_is_reported() -> None:
    """Several keys that do not exist are one line each."""
    lines = complaint({"groups": {"a": {"blub": 1, "blob": 2}}})
    assert [line.partition(": ")[0] for line in lines] == ["fleet.groups.a.blub", "fleet.groups.a.blob"]


def test_an_order_that_repeats_a_name() -> None:
    """A repeated name of an order is one line, and the name that is missing instead another one."""
    lines = complaint({**TWO, "router_order": ["replica-1", "replica-1"]})
    assert "fleet.router_order.1 = 'replica-1': is listed already, at 0" in lines
    assert "fleet.router_order: must name every replica once; missing: replica-0" in lines


@pytest.mark.parametrize(
    ("events", "line"),
    [
        ([("fail", 1, "c-0")], "fleet.events.0.replica = 'c-0': unknown replica 'c-0'"),
        ([("start", 5), ("start", 6)], "fleet.events.1.event = 'start': a-0 is there already at that time"),
        ([("fail", 1), ("fail", 2)], "fleet.events.1.event = 'fail': a-0 is down at that time"),
        ([("fail", 1), ("drain", 2)], "fleet.events.1.event = 'drain': a-0 is down at that time"),
        ([("fail", 1, "a-0", {"repair_s": 5}), ("start", 3)], "fleet.events.1.event = 'start': a-0 is being repaired"),
        ([("drain", 1), ("drain", 2)], "fleet.events.1.event = 'drain': a-0 is draining or has gone at that time"),
        ([("drain", 1), ("start", 2)], "fleet.events.1.event = 'start': a-0 can still be draining at that time; give"),
        ([("drain", 1, "a-0", {"deadline_s": 2}), ("start", 2)], "fleet.events.1.event = 'start': a-0 can still be dr"),
        ([("drain", 1, "a-0", {"deadline_s": 2}), ("fail", 9)], "fleet.events.1.event = 'fail': a-0 is not there at t"),
        ([("fail", 9), ("start", 3), ("start", 4)], "fleet.events.2.event = 'start': a-0 is there already"),
        ([("fail", 1, "a-0", {"deadline_s": 2})], "fleet.events.0.deadline_s: unknown key 'deadline_s'"),
        ([("start", 1, "a-0", {"repair_s": 2})], "fleet.events.0.repair_s: unknown key 'repair_s'"),
        ([("fall", 1)], "fleet.events.0.event = 'fall': must be fail, drain or start; did you mean 'fail'?"),
        ([("fail", -1)], "fleet.events.0.at_s = -1: must be >= 0"),
    ],
)
def test_events_that_make_no_sense(events: list[tuple[Any, ...]], line: str) -> None:
    """An event of a replica that is not in the state for it is one line, at the event."""
    (found,) = complaint({"groups": {"a": {}, "b": {}}, "events": list(map(_event, events))})
    assert found.startswith(line)


@pytest.mark.parametrize(
    "events",
    [
        [("fail", 1, "a-0", {"repair_s": 5}), ("fail", 6), ("start", 7), ("drain", 8)],  # back at 6, and down again
        [("start", 5), ("drain", 6, "a-0", {"deadline_s": 1}), ("start", 7)],
        [("drain", 6), ("fail", 2, "a-0", {"repair_s": 4})],  # not listed by time: it is back at 6
        [("fail", 1), ("fail", 1, "b-0"), ("start", 1)],  # at the same time as they are listed
    ],
)
def test_events_that_make_sense(events: list[tuple[Any, ...]]) -> None:
    """A replica is back when its repair ends, gone when its drain's deadline is over, and can start again."""
    _, fleet, _ = resolved({"groups": {"a": {}, "b": {}}, "events": list(map(_event, events))})
    times = [event.at_s for event in fleet.events]
    assert times == sorted(times)
    assert len(times) == len(events)


def test_routers_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newly registered router is known by name, with its own keys only."""
    monkeypatch.setitem(ROUTERS, "sticky", Sticky)
    _, fleet, _ = resolved({**TWO, "router": {"kind": "sticky", "limit": 3}})
    assert (fleet.router, fleet.settings) == ("sticky", Sticky.Settings(limit=3))  # type: ignore[call-arg]
    assert complaint({**TWO, "router": "sticky"}) == ["fleet.router.limit: this key is missing"]
    (line,) = complaint({**TWO, "router": {"kind": "sticky", "limit": 0}})
    assert line.startswith("fleet.router.limit = 0: must be >= 1")


def test_unknown_names_of_large_fleets_are_short_lines() -> None:
    """The message about an unknown replica lists some names of a large fleet and how many there are more."""
    events = [_event(("fail", 1, f"x-{place}")) for place in range(1_000)]
    lines = complaint({"replicas": 10_000, "events": events})
    assert len(lines[0]) < 2_000
    assert "known: replica-0, replica-1" in lines[0]
    assert lines[0].endswith(", and 9,960 more")


def _event(event: tuple[Any, ...]) -> dict[str, Any]:
    kind, at_s, replica, more = (*event, "a-0", {})[:4] if len(event) < 3 else (*event, {})[:4]
    return {"at_s": at_s, "replica": replica, "event": kind, **more}
