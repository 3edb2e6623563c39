"""A fleet with every value decided: what its replicas run, and where each number comes from."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.errors import InputError
from simqueue.execution.packed import packed, unpacked
from simqueue.frontend import FrontEndTimes
from simqueue.hardware import kv_pool_blocks
from simqueue.routing import ROUTERS, Age, FleetEvent, RandomFailures, Recovery, RoundRobin, Signal
from simqueue.scenario import from_mapping
from simqueue.settings import Settings

from ..helpers.profiles import examples
from .fleets import KEYS, Sticky, complaint, resolved, scenario

STICKY = {"kind": "sticky", "limit": 3}
SOURCE = "router: sticky 1.0: its manual"


@pytest.fixture
def sticky(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the router."""
    monkeypatch.setitem(ROUTERS, "sticky", Sticky)


def test_a_policy_without_a_fleet_has_none() -> None:
    """Without the key, and with null, there is no fleet, whatever the scenario has for other policies."""
    policies = {"p": {"scheduler": "chunked", "fleet": None}, "q": {"scheduler": "chunked"}}
    found = from_mapping({**KEYS, "policies": policies, "fleet": {"replicas": 3}}).resolve()
    assert found.policy("p").fleet is None
    assert found.values["policies"]["p"]["fleet"] is None
    fleet = found.policy("q").fleet
    assert fleet is not None
    assert fleet.replicas == 3


def test_the_policys_fleet_replaces_the_scenarios_as_a_whole() -> None:
    """Nothing of the scenario's fleet is left in a policy that has its own."""
    policies = {"p": {"scheduler": "chunked", "fleet": {"replicas": 2}}}
    found = from_mapping({**KEYS, "policies": policies, "fleet": {"replicas": 3, "router": "random"}}).resolve()
    fleet = found.policy("p").fleet
    assert fleet is not None
    assert (fleet.replicas, fleet.router) == (2, "round_robin")
    assert found.origins["policies.p.fleet.router.kind"] == "default"


def test_replicas_alone_are_one_group_of_the_policy() -> None:
    """The replicas of a fleet without groups run what the policy runs without a fleet."""
    policy, fleet, _ = resolved({"replicas": 3})
    alone = scenario(None).resolve().policy("p")
    assert fleet.names == ("replica-0", "replica-1", "replica-2")
    (group,) = fleet.groups
    assert (group.name, group.replicas, group.weight, group.policy.fleet) == ("replica", 3, 1.0, None)
    for name in ("scheduler", "settings", "gpu", "model", "step_time", "kv_cache", "longest_request_tokens"):
        assert getattr(group.policy, name) == getattr(policy, name) == getattr(alone, name)


def test_a_group_has_its_own_keys_and_inherits_the_others() -> None:
    """A group's key overrides the policy's, which overrides the scenario's; kv_cache is merged at each level."""
    groups = {
        "big": {"replicas": 2, "weight": 3, "gpu": "h200-sxm", "tensor_parallel": 2, "kv_cache": {"memory_share": 0.5}},
        "small": {"max_num_seqs": 4, "max_model_len": 100, "front_end": {"request_ms": 2}},
    }
    policy, fleet, _ = resolved({"groups": groups}, kv_cache={"block_size": 32}, max_model_len=200)
    big, small = fleet.groups
    assert fleet.names == ("big-0", "big-1", "small-0")
    assert ((big.weight, small.weight), (big.replicas, small.replicas)) == ((3, 1), (2, 1))
    assert (big.policy.settings.max_num_seqs, small.policy.settings.max_num_seqs) == (8, 4)  # type: ignore[attr-defined]
    assert (big.policy.longest_request_tokens, small.policy.longest_request_tokens) == (200, 100)
    assert (big.policy.front_end, small.policy.front_end) == (None, FrontEndTimes(request_s=2e-3))
    assert big.policy.gpu is not None
    assert big.policy.model is not None
    assert big.policy.gpu.name == "h200-sxm"
    assert (big.policy.kv_cache.rules.block_size, small.policy.kv_cache.rules.block_size) == (32, 32)
    assert big.policy.kv_cache.blocks == kv_pool_blocks(big.policy.gpu, big.policy.model, 2, 0.5, 32)
    assert policy.gpu == big.policy.gpu  # where one set of values is asked for, it is that of the first group


def test_a_group_can_have_another_engine() -> None:
    """A group with another scheduler or engine has nothing of the policy's own keys, and all of the shared ones."""
    groups: dict[str, Any] = {
        "real": {"engine": "vllm", "version": "0.33.0"},
        "toy": {"scheduler": "static"},
        "same": {},
    }
    _, fleet, found = resolved({"groups": groups}, tensor_parallel=2)
    real, toy, same = (group.policy for group in fleet.groups)
    assert (real.scheduler, toy.scheduler, same.scheduler) == ("vllm", "static", "chunked")
    assert [one.settings.max_num_seqs for one in (real, toy, same)] == [None, 32, 8]  # type: ignore[attr-defined]
    assert [one.tensor_parallel for one in (real, toy, same)] == [2, 2, 2]
    above = "policies.p.fleet.groups"
    assert found.origins[f"{above}.real.max_num_seqs"].startswith("version: vllm 0.33.0")
    assert found.origins[f"{above}.toy.max_num_seqs"] == "default"
    assert found.origins[f"{above}.same.max_num_seqs"] == "given"


def test_a_group_can_have_a_server_as_measured() -> None:
    """Each group has the server that its own preset was fitted to."""
    measured = {"kind": "roofline", "preset": "vllm-h100-llama-70b", "server": "as measured"}
    groups: dict[str, Any] = {"a": {"step_time": measured}, "b": {}}
    _, fleet, found = resolved({"groups": groups})
    alone = scenario(None, step_time=measured).resolve()
    assert fleet.groups[0].policy.front_end == alone.policy("p").front_end
    assert fleet.groups[1].policy.front_end is None
    assert found.origins["policies.p.fleet.groups.a.front_end.request_ms"] == "preset: as measured"


def test_the_gpu_may_be_given_by_groups_alone() -> None:
    """A policy whose groups have all that is needed needs nothing itself."""
    keys = {key: value for key, value in KEYS.items() if key != "gpu"}
    groups: dict[str, Any] = {"a": {"gpu": "h200-sxm"}, "b": {"gpu": "h100-sxm"}}
    found = from_mapping({**keys, "fleet": {"groups": groups}}).resolve()
    fleet = found.policy("p").fleet
    assert fleet is not None
    assert [group.policy.gpu.name for group in fleet.groups if group.policy.gpu is not None] == ["h200-sxm", "h100-sxm"]


def test_the_plain_keys_of_a_fleet() -> None:
    """Times are in seconds, events in order of time with numbers of replicas, an order has numbers."""
    events = [
        {"at_s": 20, "replica": "b-0", "event": "drain", "deadline_s": 30},
        {"at_s": 40, "replica": "a-1", "event": "start"},
        {"at_s": 10, "replica": "a-0", "event": "fail", "repair_s": 3},
        {"at_s": 20, "replica": "a-0", "event": "fail"},
    ]
    _, fleet, _ = resolved(
        {
            "groups": {"a": {"replicas": 2}, "b": {}},
            "router": "random",
            "router_order": ["b-0", "a-0", "a-1"],
            "router_time": {"request_ms": 0.5, "latency_ms": 2},
            "events": events,
            "failures": {"mtbf_s": 100, "repair_s": 7},
            "in_flight": "resume",
        }
    )
    assert (fleet.router, fleet.order) == ("random", (2, 0, 1))
    assert (fleet.router_request_s, fleet.router_latency_s) == (0.0005, 0.002)
    assert fleet.failures == RandomFailures(100, 7)
    assert fleet.in_flight == "resume"
    assert fleet.events == (
        FleetEvent(10, 0, "fail", repair_s=3),
        FleetEvent(20, 2, "drain", deadline_s=30),
        FleetEvent(20, 0, "fail"),
        FleetEvent(40, 1, "start"),
    )


def test_defaults_of_a_fleet() -> None:
    """Without further keys: round robin as listed, no time, signals without age, no failures, no recovery."""
    _, fleet, _ = resolved({"replicas": 2})
    assert (fleet.router, fleet.order, fleet.in_flight) == ("round_robin", "listed", "resend")
    assert (fleet.router_request_s, fleet.router_latency_s) == (0, 0)
    assert fleet.ages == dict.fromkeys((Signal.RUNNING, Signal.WAITING, Signal.KV_USED, Signal.TOKENS), Age())
    assert (fleet.events, fleet.failures, fleet.recovery) == ((), None, Recovery())
    assert type(fleet.make_router(Random(1))) is RoundRobin


@pytest.mark.usefixtures("sticky")
def test_the_routers_own_numbers() -> None:
    """What a fleet leaves out is the router's own, and the origin says from where the router has it."""
    _, fleet, found = resolved({"replicas": 2, "router": STICKY})
    assert fleet.recovery == Sticky.recovery
    assert fleet.ages[Signal.WAITING] == Age(0.5, 0.25)
    assert fleet.ages[Signal.KV_USED] == Age(3.0, 0.0)
    assert fleet.ages[Signal.RUNNING] == Age()
    values, above = found.values["policies"]["p"]["fleet"], "policies.p.fleet"
    assert values["router"] == {"kind": "sticky", "limit": 3, "share": 0.5}
    assert values["retries"] == {
        "limit": 3,
        "refused": False,
        "wait_ms": 200,
        "factor": 3,
        "longest_ms": 7000,
        "jitter": 0.1,
    }
    assert values["health"] == {"every_s": 9, "timeout_s": 2, "failures": 4, "successes": 5}
    assert values["breaker"] == {"failures": 6, "window_s": 11, "open_s": 12, "successes": 7}
    for key in ("retries.limit", "health.every_s", "breaker.open_s"):
        assert found.origins[f"{above}.{key}"] == SOURCE
    assert found.origins[f"{above}.signals.waiting.every_s"] == "router: sticky"
    assert found.origins[f"{above}.signals.running.every_s"] == "default"
    assert found.origins[f"{above}.router.kind"] == "policy"
    assert found.origins[f"{above}.router.share"] == "default"


@pytest.mark.usefixtures("sticky")
def test_what_is_given_overrides_the_routers_numbers() -> None:
    """Keys that are given override the router's one by one; a word switches all of them off."""
    keys = {
        "retries": {"limit": 1, "longest_ms": 100},
        "health": "at once",
        "breaker": "none",
        "signals": {"every_s": 2, "kv_used": {"delay_s": 0.125}, "waiting": {"every_s": 4}},
    }
    _, fleet, found = resolved({"replicas": 2, "router": STICKY, **keys})
    recovery = fleet.recovery
    assert (recovery.retries, recovery.wait_factor, recovery.longest_wait_s) == (1, 3, 0.1)
    assert recovery.first_wait_s == 0.1  # never longer than the longest
    assert (recovery.check_every_s, recovery.breaker_failures) == (None, None)
    assert fleet.ages[Signal.KV_USED] == Age(2, 0.125)
    assert fleet.ages[Signal.WAITING] == Age(4, 0.25)
    assert fleet.ages[Signal.TOKENS] == Age(2, 0)
    above = "policies.p.fleet"
    assert found.origins[f"{above}.retries.limit"] == "policy"
    assert found.origins[f"{above}.retries.factor"] == SOURCE
    assert found.origins[f"{above}.health"] == "policy"
    assert found.origins[f"{above}.signals.tokens.every_s"] == "policy"
    assert found.origins[f"{above}.signals.waiting.delay_s"] == "router: sticky"


@pytest.mark.usefixtures("sticky")
def test_signals_as_they_are_now_have_no_delay() -> None:
    """With `every_s: 0` a signal is as it is now: no delay of the router counts, and one that is given is wrong."""
    _, fleet, _ = resolved({"replicas": 2, "router": STICKY, "signals": {"every_s": 0}})
    assert fleet.ages[Signal.WAITING] == Age()
    _, fleet, _ = resolved({"replicas": 2, "signals": {"delay_s": 0.5, "kv_used": {"every_s": 2}}})
    assert (fleet.ages[Signal.KV_USED], fleet.ages[Signal.RUNNING]) == (Age(2, 0.5), Age())
    (line,) = complaint({"replicas": 2, "signals": {"delay_s": 0.5}})
    assert line.startswith("fleet.signals.delay_s = 0.5: needs every_s > 0")
    (line,) = complaint({"replicas": 2, "signals": {"running": {"delay_s": 0.5}}})
    assert line.startswith("fleet.signals.running.delay_s = 0.5: needs every_s > 0")


def test_a_router_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a router says of its keys when it is made is an error of the scenario, at the router."""

    class Refusing(Sticky):
        def __init__(self, settings: Settings, random: Random) -> None:
            raise InputError("goes with limit: 1 only", "share", value=0.5)

    monkeypatch.setitem(ROUTERS, "sticky", Refusing)
    assert complaint({"replicas": 2, "router": STICKY}) == ["fleet.router.share = 0.5: goes with limit: 1 only"]


@pytest.mark.parametrize("kind", sorted(ROUTERS))
def test_every_router_can_be_named_alone(kind: str) -> None:
    """Each router of the package has a default for every key, and its values resolve to themselves."""
    _, fleet, found = resolved({"replicas": 2, "router": kind})
    assert type(fleet.make_router(Random(1))) is ROUTERS[kind]
    assert fleet.recovery == ROUTERS[kind].recovery
    assert {signal: fleet.ages[signal] for signal in ROUTERS[kind].ages} == ROUTERS[kind].ages
    values = json.loads(json.dumps(found.values, allow_nan=False))
    again = from_mapping(values).resolve()
    assert again.values == values
    own = again.policy("p").fleet
    assert own is not None
    assert own.settings == fleet.settings


def test_keys_that_neither_fleet_nor_router_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of a mapping that a router has nothing for is that of sglang-router."""
    monkeypatch.setitem(ROUTERS, "sticky", Sticky)
    monkeypatch.setattr(Sticky, "recovery", Recovery(retries=0))
    _, fleet, found = resolved(
        {"replicas": 2, "router": STICKY, "retries": {"limit": 2}, "health": {}, "breaker": {"open_s": 1}}
    )
    expected = Recovery(
        retries=2,
        first_wait_s=0.05,
        wait_factor=1.5,
        longest_wait_s=30,
        jitter=0.2,
        check_every_s=60,
        check_timeout_s=5,
        check_failures=3,
        check_successes=2,
        breaker_failures=10,
        breaker_window_s=120,
        breaker_open_s=1,
        breaker_successes=3,
    )
    assert fleet.recovery == expected
    assert found.origins["policies.p.fleet.retries.factor"] == "default"
    assert found.values["policies"]["p"]["fleet"]["retries"]["wait_ms"] == 50


def test_origins_of_groups() -> None:
    """The origin of a group's value is the group, the policy, the scenario, a flag, or what it was computed from."""
    groups: dict[str, Any] = {"a": {"gpu": "h200-sxm", "kv_cache": {"block_size": 32}}, "b": {"replicas": 2}}
    flags = ("policies.p.max_num_seqs=5", "policies.p.fleet.groups.b.max_num_batched_tokens=512")
    _, _, found = resolved({"groups": groups}, *flags, tensor_parallel=2, kv_cache={"memory_share": 0.5})
    above = "policies.p.fleet.groups"
    expected = {
        "a.gpu": "group",
        "b.gpu": "given",
        "a.kv_cache.block_size": "group",
        "a.kv_cache.memory_share": "policy",
        "a.kv_cache.blocks": "auto: from memory",
        "b.kv_cache.block_size": "default",
        "a.max_num_seqs": "--set",
        "b.max_num_batched_tokens": "--set",
        "a.max_num_batched_tokens": "default",
        "a.tensor_parallel": "policy",
        "b.replicas": "policy",
        "a.replicas": "default",
        "a.max_model_len": "the model's limit",
        "a.order": "default",
    }
    assert {key: found.origins[f"{above}.{key}"] for key in expected} == expected


def test_warnings_of_groups_name_them() -> None:
    """What is doubtful about a group is a warning of the policy with the name of the group."""
    policy, _, _ = resolved({"groups": {"a": {}, "b": {"gpu": "h200-sxm"}}})
    assert [line.partition(":")[0] for line in policy.warnings] == ["group a", "group b"]


def test_a_fleet_crosses_processes() -> None:
    """A resolved scenario with a fleet can be sent to another process."""
    _, fleet, found = resolved({"groups": {"a": {}, "b": {}}, "router": "random"})
    sent = unpacked(packed(found)).policy("p").fleet
    assert (sent.names, sent.router, sent.ages) == (fleet.names, "random", fleet.ages)
    assert type(sent.make_router(Random(1))) is ROUTERS["random"]


@st.composite
def fleets(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a fleet with any of its keys."""
    ms, s = st.floats(0, 1e3), st.floats(0, 1e3)
    group = st.fixed_dictionaries(
        {},
        optional={
            "replicas": st.integers(1, 3),
            "weight": st.floats(0.1, 9),
            "gpu": st.sampled_from(["h200-sxm", "h100-sxm"]),
            "max_num_seqs": st.integers(1, 9),
            "kv_cache": st.fixed_dictionaries({}, optional={"block_size": st.just(32), "blocks": st.integers(1, 99)}),
            "max_model_len": st.integers(1, 999) | st.none(),
            "step_time": st.just({"kind": "constant", "seconds": 0.5}) | st.none(),
        },
    )
    fleet: dict[str, Any] = draw(
        st.fixed_dictionaries({"replicas": st.integers(1, 5)})
        | st.fixed_dictionaries({"groups": st.dictionaries(st.sampled_from("abc"), group, min_size=1)})
    )
    age = st.fixed_dictionaries({"every_s": st.floats(0.5, 1e3)}, optional={"delay_s": s}) | st.just({"every_s": 0})
    retries = {
        "limit": st.integers(0, 9),
        "refused": st.booleans(),
        "wait_ms": ms,
        "factor": st.floats(1, 9),
        "jitter": st.floats(0, 1),
    }
    more = st.fixed_dictionaries(
        {},
        optional={
            "router": st.sampled_from(["random", "round_robin", {"kind": "random"}, STICKY]),
            "router_order": st.sampled_from(["listed", "shuffled"]),
            "router_time": st.fixed_dictionaries({}, optional={"request_ms": ms, "latency_ms": ms}),
            "signals": st.tuples(age | st.just({}), st.dictionaries(st.sampled_from(["running", "kv_used"]), age)).map(
                lambda pair: {**pair[0], **pair[1]}
            ),
            "failures": st.just({"mtbf_s": 3, "repair_s": 0.1}) | st.none(),
            "in_flight": st.sampled_from(["lose", "resend", "restart", "resume"]),
            "retries": st.fixed_dictionaries({}, optional=retries) | st.none(),
            "health": st.sampled_from(["at once", None, {}, {"every_s": 0.7}]),
            "breaker": st.sampled_from(["none", None, {}, {"failures": 2}]),
        },
    )
    return fleet | draw(more)


@examples(40, 400)
@given(fleets(), st.booleans())
def test_a_resolved_fleet_resolves_to_itself(fleet: dict[str, Any], of_all: bool) -> None:
    """The values of any fleet are JSON, and a scenario that resolves to the same values and the same record."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ROUTERS, "sticky", Sticky)
        found = (from_mapping({**KEYS, "fleet": fleet}) if of_all else scenario(fleet)).resolve()
        values = json.loads(json.dumps(found.values, allow_nan=False))
        again = from_mapping(values).resolve()
    assert again.values == values
    first, second = found.policy("p").fleet, again.policy("p").fleet
    if first is None or second is None:  # one replica that is always there is no fleet
        assert (first, second) == (None, None)
        groups = fleet.get("groups") or {"replica": {}}
        assert fleet.get("replicas", 1) == 1
        assert len(groups) == 1
        return
    for name in ("names", "router", "settings", "order", "router_request_s", "router_latency_s", "ages", "recovery"):
        assert getattr(first, name) == getattr(second, name)
    for one, other in zip(first.groups, second.groups, strict=True):
        assert (one.name, one.replicas, one.weight, one.policy.kv_cache) == (
            *(other.name, other.replicas, other.weight),
            other.policy.kv_cache,
        )
        assert one.policy.step_time == other.policy.step_time


@examples(20, 200)
@given(fleets())
def test_every_value_of_a_fleet_has_an_origin(fleet: dict[str, Any]) -> None:
    """Every value has an origin that is not empty, and every origin has a value."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ROUTERS, "sticky", Sticky)
        found = scenario(fleet).resolve()

    def leaves(value: Any, path: str) -> list[str]:
        if not isinstance(value, dict) or not value:
            return [path]
        return [leaf for key, inner in value.items() for leaf in leaves(inner, f"{path}.{key}" if path else key)]

    assert sorted(found.origins) == sorted(leaves(found.values, ""))
    assert all(found.origins.values())
