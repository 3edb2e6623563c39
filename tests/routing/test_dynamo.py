"""Dynamo's routers: the formula of costs by hand, what is booked, and when requests wait."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.request import Request
from simqueue.routing import ROUTERS, Signal
from simqueue.routing.dynamo.costs import Weights, Worker, chances, costs
from simqueue.routing.dynamo.disaggregation import skips_remote_prefill
from simqueue.routing.dynamo.kv import KvRouter
from simqueue.routing.dynamo.loads import Loads
from simqueue.routing.dynamo.router import Dynamo

from ..helpers.profiles import examples
from .replicas import Replica, made, p_value, replicas, request

BLOCK = 16


def kv(**keys: Any) -> KvRouter:
    """Return the KV router of these keys."""
    one = made("dynamo", **keys)
    assert isinstance(one, Dynamo)
    assert isinstance(one.policy, KvRouter)
    return one.policy


def prompted(name: str, *pieces: tuple[int, int, int]) -> Request:
    """Return a request with this prompt."""
    return Request(name, 0.0, sum(n for _, _, n in pieces), 10, prompt=pieces)


def cost_of(worker: Worker, tokens: int = 160, **weights: float) -> float:
    """Return the cost of a prompt at this worker, beside an idle one."""
    return costs({0: worker, 1: Worker()}, tokens, BLOCK, Weights(**weights))[0]


@pytest.mark.parametrize(
    ("worker", "weights", "cost"),
    [
        (Worker(), {}, 10.0),  # 160 / 16
        (Worker(open_prefill_tokens=80, decode_blocks=7), {}, 15.0 + 7),
        (Worker(device_blocks=4, decode_blocks=7), {}, 6.0 + 7),
        (Worker(device_blocks=12), {}, 0.0),  # more than the prompt: no credit against other work
        (Worker(open_prefill_tokens=32, device_blocks=12), {}, 2.0),
        (Worker(device_blocks=4), {"overlap_score_credit": 0.5}, 8.0),
        (Worker(device_blocks=2, host_blocks=4, disk_blocks=4), {}, 10 - 2 - 0.75 * 4 - 0.25 * 4),
        (Worker(device_blocks=4, decode_blocks=7), {"prefill_load_scale": 2.0}, 12.0 + 7),
        (Worker(requests=3), {"decode_active_request_weight": 0.5}, 11.5),
        # 80 tokens more open than at the other worker are 5 blocks, half the prompt: credit 4 / (1 + 2 * 0.5)
        (Worker(open_prefill_tokens=80, device_blocks=4), {"overlap_score_credit_decay": 2.0}, 15 - 2.0),
    ],
)
def test_costs_by_hand(worker: Worker, weights: dict[str, float], cost: float) -> None:
    """Prefill blocks less credits, not below 0, scaled, plus decode blocks and requests."""
    assert cost_of(worker, **weights) == pytest.approx(cost, abs=1e-12)


def test_equal_costs_have_equal_chances() -> None:
    """Without a temperature the lowest costs share the chance."""
    assert chances({3: 5.0, 1: 4.0, 2: 4.0}) == {1: 0.5, 2: 0.5}


def test_a_temperature_is_a_softmax_of_scaled_costs() -> None:
    """Costs 10, 15, 20 scale to 0, 0.5, 1; at temperature 0.5 the odds are 1 : e^-1 : e^-2."""
    odds = [1, math.exp(-1), math.exp(-2)]
    found = chances({0: 10.0, 1: 15.0, 2: 20.0}, 0.5)
    assert list(found.values()) == pytest.approx([one / sum(odds) for one in odds])
    assert chances({0: 3.0, 1: 3.0}, 0.5) == {0: 0.5, 1: 0.5}


def test_an_open_prefill_counts_until_the_first_token() -> None:
    """The uncached tokens are open until the first token, the blocks until the end; a shared block counts once."""
    router, seen = kv(), replicas(2, cached=[{"a": 32, "b": 0}, {}])
    first, second = prompted("a", (1, 0, 100)), prompted("b", (1, 0, 64), (2, 0, 40))
    router.rank(first, seen, 0.0)
    router.dispatched(first, seen[0], 0.0)
    assert router.loads.open_prefill_tokens(0) == 68
    scores = router.rank(second, seen, 0.0).scores
    assert scores["prefill_tokens"] == {0: 68 + 104, 1: 104}
    assert scores["decode_blocks"] == {0: 6 + 2, 1: 6}  # 100 and 104 tokens have 6 blocks each, 4 in common
    router.first_token(first, seen[0], 1.0)
    assert router.rank(second, seen, 0.0).scores["prefill_tokens"] == {0: 104, 1: 104}
    router.finished(first, seen[0], 2.0, tokens=10, served=True)
    assert router.rank(second, seen, 0.0).scores["decode_blocks"] == {0: 6, 1: 6}
    assert len(router.loads) == 0


def test_a_request_that_ends_early_leaves_nothing_open() -> None:
    """A request that fails before its first token takes its open tokens along."""
    router, seen = kv(), replicas(1)
    router.rank(request(), seen, 0.0)
    router.dispatched(request(), seen[0], 0.0)
    router.finished(request(), seen[0], 1.0, tokens=0, served=False)
    assert router.loads.open_prefill_tokens(0) == 0
    assert router.loads.with_prompt(0, ()) == Worker()


def test_without_events_what_was_sent_counts_as_cached() -> None:
    """After a prompt was sent to replica 1, its 6 whole blocks count there for 120 s, and until it comes back anew."""
    router, seen = kv(use_kv_events=False), replicas(2)
    one, again = prompted("a", (1, 0, 100)), prompted("b", (1, 0, 100))
    router.rank(one, seen, 0.0)
    router.dispatched(one, seen[1], 0.0)
    assert router.reads == frozenset()
    assert router.rank(again, seen, 119.0).scores["overlap_blocks"] == {0: 0, 1: 6}
    assert router.rank(again, seen, 120.0).scores["overlap_blocks"] == {0: 0, 1: 0}
    router.joined(seen[1], 5.0)
    assert router.rank(again, seen, 6.0).scores["overlap_blocks"] == {0: 0, 1: 0}
    router.dispatched(again, seen[0], 7.0)
    router.left(seen[0], 8.0)
    assert router.rank(prompted("c", (1, 0, 100)), seen, 9.0).scores["overlap_blocks"] == {0: 0, 1: 0}


def test_requests_wait_while_all_have_too_much_open() -> None:
    """Above 0.5 * 200 open tokens at every healthy replica the request waits; one that is at the limit is enough."""
    router = kv(router_queue_threshold=0.5)
    seen = replicas(3, max_num_batched_tokens=[200, 200, 200], healthy=[True, True, False])
    for name, tokens, at in (("a", 101, 0), ("b", 101, 1)):
        router.rank(request(name, prompt=tokens), seen, 0.0)
        assert router.choose(request(name, prompt=tokens), seen, 0.0).replica is not None
        router.dispatched(request(name, prompt=tokens), seen[at], 0.0)
    waiting = router.choose(request("c"), seen, 0.0)
    assert (waiting.replica, waiting.refused) == (None, False)
    router.first_token(request("a"), seen[0], 1.0)
    assert router.choose(request("c"), seen, 1.0).replica == 0


def test_as_much_open_as_the_threshold_is_not_busy() -> None:
    """100 open tokens of 0.5 * 200 let another request in, 101 do not; `rank` says the same as `choose`."""
    for tokens, waits in ((100, False), (101, True)):
        router, seen = kv(router_queue_threshold=0.5), replicas(1, max_num_batched_tokens=[200])
        router.rank(request("a", prompt=tokens), seen, 0.0)
        router.dispatched(request("a", prompt=tokens), seen[0], 0.0)
        ranking = router.rank(request("b"), seen, 0.0)
        assert ranking.chances == ({} if waits else {0: 1.0})
        assert ranking.reason == router.choose(request("b"), seen, 0.0).reason


def test_what_one_request_has_open_leaves_with_it_alone() -> None:
    """Two requests at a worker: one ends before its first token and after two output blocks, the other stays."""
    loads = Loads()
    loads.book("a", 0, (1, 2, 3), 30)
    loads.book("b", 0, (1, 2), 20)
    loads.output_block("a")
    loads.output_block("a")
    assert loads.with_prompt(0, (1, 9)) == Worker(50, 3 + 2 + 1, 2)
    loads.free("a")
    assert loads.with_prompt(0, ()) == Worker(20, 2, 1)


def test_a_credit_falls_with_what_is_open_beyond_the_least() -> None:
    """80 and 160 tokens open: 5 blocks more at the second, half the prompt of 10 blocks, so its credit is 4 / 1.5."""
    workers = {0: Worker(open_prefill_tokens=80, device_blocks=4), 1: Worker(open_prefill_tokens=160, device_blocks=4)}
    found = costs(workers, 160, BLOCK, Weights(overlap_score_credit_decay=1.0))
    assert found == pytest.approx({0: 15 - 4, 1: 20 - 4 / 1.5})


def test_no_limit_of_a_step_is_no_threshold() -> None:
    """A replica without a token budget is never too busy."""
    router, seen = kv(router_queue_threshold=0.0), replicas(1)
    router.rank(request("a"), seen, 0.0)
    router.dispatched(request("a"), seen[0], 0.0)
    assert router.choose(request("b"), seen, 0.0).replica == 0


@pytest.mark.parametrize(
    ("prompt", "cached", "skips"),
    [
        (1000, 896, True),  # rest 104: short, 10 %
        (2047, 0, False),  # short, but all of the prompt
        (2926, 879, True),  # rest 2047, 69.96 %
        (2926, 878, False),  # rest 2048: not short
        (1000, 300, False),  # exactly 70 %
        (1000, 301, True),
        (500, 640, True),  # cached beyond the prompt: nothing is left
    ],
)
def test_short_rests_are_computed_by_the_decode_worker(prompt: int, cached: int, skips: bool) -> None:
    """Fewer than 2048 tokens and less than 70 % of the prompt, both strictly."""
    assert skips_remote_prefill(prompt, cached) is skips


@pytest.mark.parametrize("busy", [True, False, None])
@pytest.mark.parametrize("cached", [0, 896])
def test_a_busy_prefill_worker_is_passed_over(busy: bool | None, cached: int) -> None:
    """By load, only whether it is busy counts, and unknown counts as no; the third policy takes either reason."""
    assert skips_remote_prefill(1000, cached, policy="prefill_load", prefill_is_busy=busy) is (busy is True)
    either = skips_remote_prefill(1000, cached, policy="isl_or_load", prefill_is_busy=busy)
    assert either is (busy is True or cached == 896)


MODES = ["round-robin", "random", "power-of-two", "least-loaded"]


@pytest.mark.parametrize("mode", MODES)
def test_simple_modes_choose_by_their_chances(mode: str) -> None:
    """3,000 choices do not differ from the chances."""
    seen = replicas(5, in_flight=[2, 0, 0, 1, 0], healthy=[True, True, True, True, False])
    one = made("dynamo", 3, router_mode=mode)
    assert p_value(one, seen, request()) > 1e-4
    assert one.reads == frozenset()
    assert one.is_independent is (mode in ("round-robin", "random"))


@pytest.mark.parametrize("keys", [{}, {"router_temperature": 0.7}, {"use_kv_events": False}])
def test_choices_by_cost_have_the_frequencies_of_their_chances(keys: dict[str, Any]) -> None:
    """With ties, and with a temperature, 3,000 choices do not differ from the chances."""
    router = kv(**keys)
    seen = replicas(4, cached=[{"r": 48}, {"r": 48}, {}, {"r": 16}], healthy=[True, True, True, True])
    assert p_value(router, seen, request(prompt=200)) > 1e-4


def test_only_the_kv_mode_reads_the_caches() -> None:
    """KV events are the signal `cached`, which has no age."""
    assert made("dynamo").reads == {Signal.CACHED}
    assert ROUTERS["dynamo"].wants_first_tokens


@examples(40, 800)
@given(
    sends=st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 90), st.integers(0, 2), st.sampled_from(["open", "decode", "end"])),
        max_size=20,
    )
)
def test_loads_are_those_of_a_plain_recount(sends: list[tuple[int, int, int, str]]) -> None:
    """Open tokens, requests and different blocks of each worker are those of the requests that are in it."""
    router, seen = kv(), [Replica(i) for i in range(3)]
    inside: list[tuple[Request, int, str]] = []
    for i, (stream, tokens, number, state) in enumerate(sends):
        one = prompted(str(i), (stream, 0, tokens))
        router.rank(one, seen, 0.0)
        router.dispatched(one, seen[number], 0.0)
        if state != "open":
            router.first_token(one, seen[number], 0.0)
        if state == "end":
            router.finished(one, seen[number], 0.0, tokens=1, served=True)
        else:
            inside.append((one, number, state))
    for number in range(3):
        here = [(one, state) for one, at, state in inside if at == number]
        blocks = {(one.prompt[0][0], i) for one, _ in here if one.prompt for i in range(one.prompt_tokens // BLOCK)}
        opened = sum(one.prompt_tokens for one, state in here if state == "open")
        assert router.loads.with_prompt(number, ()) == Worker(opened, len(blocks), len(here))
