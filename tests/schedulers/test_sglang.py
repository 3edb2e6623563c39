"""What is peculiar to SGLang's scheduler, each worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.engines.sglang import rules_of, tree_of
from simqueue.engines.sglang_facts import sglang_versions
from simqueue.errors import InputError
from simqueue.kvcache import PagedKVCache
from simqueue.kvcache.radix import RadixKVCache
from simqueue.kvcache.radixtree import RadixRules
from simqueue.request import Request
from simqueue.schedulers.keys import SglangSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.sglang import Sglang
from simqueue.simulation import RunOptions, Simulation
from simqueue.steptime.linear import LinearStepTime
from simqueue.traffic import Traffic

VERSIONS = tuple(sglang_versions())
NEWEST = VERSIONS[-1]
SECOND = LinearStepTime(1.0, 0.0, 0.0, 0.0, 0.0)


def played(requests: list[Request], version: str = NEWEST, pool: int = 1000, **flags: Any) -> list[dict[str, Any]]:
    """Return the turns of a run in which every step takes a second, without overlap."""
    facts = sglang_versions()[version]
    tree = RadixRules("lru", *tree_of(facts))
    keys = {"max_running_requests": 8, "disable_overlap_schedule": True} | flags
    policy = Sglang(SglangSettings(**keys), RadixKVCache(pool, 1, tree), RequestLimits(), rules_of(facts))
    policy.observed = True
    Simulation(Traffic(requests), policy, SECOND, RunOptions(fast=False, check=True)).run()
    return policy.log.turns


def steps(turns: list[dict[str, Any]]) -> list[dict[str, int]]:
    """Return what each turn ran."""
    return [turn["scheduled"] for turn in turns]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_long_prompt_stops_all_decodes_for_all_its_chunks(version: str) -> None:
    """The follower enters with what the last chunk leaves of its budget."""
    requests = [Request("a", 0.0, 4, 9), Request("long", 1.5, 20, 2), Request("b", 1.6, 3, 2)]
    ran = steps(played(requests, version, chunked_prefill_size=8))
    assert ran[:6] == [{"a": 4}, {"a": 1}, {"long": 8}, {"long": 8}, {"long": 4, "b": 3}, {"a": 1, "long": 1, "b": 1}]


def test_mixed_chunks_let_the_batch_decode() -> None:
    """One token of the chunk goes to each decode."""
    requests = [Request("a", 0.0, 4, 9), Request("long", 1.5, 20, 2)]
    ran = steps(played(requests, chunked_prefill_size=8, enable_mixed_chunk=True))
    assert ran[2:5] == [{"long": 7, "a": 1}] * 2 + [{"long": 6, "a": 1}]


def test_retraction_takes_the_fewest_tokens_then_the_longest_prompt() -> None:
    """They return behind all that wait, with what they had made. The ratio jumps to what the others made so far."""
    requests = [
        Request("a", 0.0, 5, 20, max_output_tokens=60),
        Request("b", 1.5, 9, 20, max_output_tokens=22),
        Request("c", 1.5, 7, 20, max_output_tokens=20, ignore_eos=False),
    ]
    turns = played(requests, pool=70, schedule_conservativeness=0.05)
    retracting = next(turn for turn in turns if turn["retracted"])
    assert retracting["retracted"] == ["b"]
    assert retracting["scheduled"] == {"a": 1, "c": 1}
    made = 17  # 70 = 21 of prompts + 1 that a made alone + 3 x 16; one more is of the prefill
    assert retracting["ratio"] == (made + 1 + made + 20 * 2) / (60 + 20 + 1)
    again = next(turn for turn in turns[3:] if turn["kind"] == "prefill")
    assert again["scheduled"]["b"] + again["prefix"].get("b", 0) == 9 + made


def test_requests_that_ignore_the_end_reserve_all_they_may_make() -> None:
    """So with ignore_eos the newest version retracts nothing, whatever the conservativeness."""
    fixed = [Request(str(n), 0.0, 5, 20) for n in range(3)]
    turns = played(fixed, pool=63, schedule_conservativeness=0.05)
    assert not any(turn["retracted"] for turn in turns)
    assert steps(turns)[0] == {"0": 5, "1": 5}


def test_default_orders_differ_where_a_prefix_is_cached() -> None:
    """lpm of 0.4.0 takes the request with the cached prefix first, fcfs the one that came first."""
    shared = ((1, 0, 50),)
    first = Request("warm", 0.0, 50, 3, prompt=shared)
    cold = Request("cold", 1.5, 50, 2, prompt=((2, 0, 50),))
    hit = Request("hit", 1.6, 51, 2, prompt=(*shared, (3, 0, 1)))
    ran = {
        order: next(
            step for step in steps(played([first, cold, hit], "0.4.0", schedule_policy=order))[1:] if "hit" in step
        )
        for order in ("lpm", "fcfs")
    }
    assert list(ran["lpm"]) == ["hit", "cold"]
    assert list(ran["fcfs"]) == ["cold", "hit"]


def test_lpm_lets_cold_requests_starve() -> None:
    """With room for one request at a time, all that hit the cache pass one that does not; fcfs bounds its wait."""
    shared = ((1, 0, 50),)
    warm = [Request(f"w{n}", 0.1 * n, 51, 2, prompt=(*shared, (10 + n, 0, 1))) for n in range(8)]
    cold = Request("cold", 0.05, 40, 2, prompt=((2, 0, 40),))
    requests = sorted([*warm, cold], key=lambda request: request.arrival_s)
    place = {}
    for order in ("lpm", "fcfs"):
        turns = played(requests, schedule_policy=order, max_running_requests=1)
        prefilled = [name for turn in turns if turn["kind"] == "prefill" for name in turn["scheduled"]]
        place[order] = prefilled.index("cold")
    assert place == {"lpm": 8, "fcfs": 1}


def test_long_queues_are_first_come_first_served_with_lpm() -> None:
    """Above 128 waiting requests nothing is looked up and nothing sorted."""
    shared = ((1, 0, 50),)
    for waiting, first in ((128, "hit"), (129, "c0")):
        warm = Request("warm", 0.0, 50, 1, prompt=shared)
        cold = [Request(f"c{n}", 0.5, 4, 1, prompt=((5 + n, 0, 4),)) for n in range(waiting - 1)]
        hit = Request("hit", 0.5, 51, 1, prompt=(*shared, (2, 0, 1)))
        turns = played([warm, *cold, hit], schedule_policy="lpm", max_running_requests=1)
        assert next(iter(turns[1]["scheduled"])) == first


def test_finished_answers_are_found_again_but_not_in_0_5_6() -> None:
    """A next turn finds prompt and answer of the turn before; 0.5.6 keeps only what the last prefill computed."""
    talk = [
        Request("one", 0.0, 10, 6, prompt=((1, 0, 10),), output_stream=2),
        Request("two", 20.0, 20, 1, prompt=((1, 0, 10), (2, 0, 6), (3, 0, 4))),
    ]
    found = {version: played(talk, version)[-1]["prefix"]["two"] for version in ("0.4.0", "0.5.6", "0.5.23")}
    assert found == {"0.4.0": 15, "0.5.6": 10, "0.5.23": 15}


def test_another_cache_is_an_error() -> None:
    """The scheduler decides by its tree."""
    with pytest.raises(InputError, match="radix tree"):
        Sglang(SglangSettings(), PagedKVCache(10, 1), RequestLimits())
