"""When a running request leaves whose client has given up, and what was delivered to it. Steps of one second."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.kvcache import PrefixKVCache
from simqueue.request import Request
from simqueue.schedulers import Policy
from simqueue.schedulers.keys import VllmV1Settings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.vllm_v1 import VllmV1

from ..helpers.playing import both_ways, make_policy, rows, seen
from ..helpers.profiles import examples

SEATS = {"max_num_seqs": 2, "max_num_batched_tokens": 64}
MADE = {
    "chunked": ("chunked", SEATS),
    "separate": ("continuous", {**SEATS, "prefill": "separate"}),
    "llamacpp": ("llamacpp", {"n_parallel": 2}),
    "static": ("static", {"max_num_seqs": 2}),
    "static, each at its end": ("static", {"max_num_seqs": 2, "release": "own_end"}),
    "static, answers whole": ("static", {"max_num_seqs": 2, "emit": "wave_end"}),
}


def made(name: str, blocks: int = 1000) -> Policy:
    """Return a fresh policy with two seats."""
    if name.startswith("vllm"):
        keys = SEATS | {"async_scheduling": "async" in name}
        if "prefix" not in name:
            return make_policy(VllmV1, keys, blocks=blocks, block_size=4)  # type: ignore[no-any-return]
        kv = PrefixKVCache(blocks, 4, registration_lag=int("async" in name))
        return VllmV1(VllmV1Settings.model_validate(keys), kv, RequestLimits())
    scheduler, keys = MADE[name]
    return make_policy(scheduler, keys, blocks=blocks, block_size=4)  # type: ignore[no-any-return]


def asked(gives_up_s: float) -> list[Request]:
    """Return three requests for two seats; the client of the second gives up."""
    return [
        Request("c", 0.0, 10, 50),
        Request("a", 0.0, 10, 50, gives_up_s=gives_up_s),
        Request("b", 0.0, 10, 5),
    ]


COLUMNS = ("first_token_s", "finish_s", "tokens_emitted", "status")


@pytest.mark.parametrize("name", ["vllm async", "vllm async prefix"])
@pytest.mark.parametrize("gives_up_s", [3.001, 3.5, 3.999])
def test_case_93_with_two_steps_in_flight_it_leaves_at_the_end_of_the_one_under_way(
    name: str, gives_up_s: float
) -> None:
    """The engine takes in what was given up before the batch that has ended: the seat is free at 4, not at 5.

    At 4 the step up to 5 runs already, so b is planned into the step from 5 on. The token that a's step makes at 4 is
    not delivered, so a has those of 1, 2 and 3 s.
    """
    recording = both_ways(lambda: made(name), asked(gives_up_s))
    assert seen(recording, *COLUMNS) == {
        "c": (1.0, 50.0, 50, "finished"),
        "a": (1.0, 4.0, 3, "timed_out"),
        "b": (6.0, 10.0, 5, "finished"),
    }
    # the step from 4 to 5 was planned with a in it
    decodes = [row for row in rows(recording, "start_s", "decode_seqs", "repeat") if row[0] < 6]
    assert decodes == [(0.0, 0, 1), (1.0, 2, 4), (5.0, 1, 1)]


@pytest.mark.parametrize("name", ["vllm", "vllm prefix", "chunked"])
@pytest.mark.parametrize("gives_up_s", [3.001, 3.5, 3.999])
def test_case_93_with_one_step_in_flight_only_the_token_under_way_is_lost(name: str, gives_up_s: float) -> None:
    """a leaves at 4 and b, planned at 4, has its first token at 5; a's client has seen the tokens of 1, 2 and 3 s."""
    recording = both_ways(lambda: made(name), asked(gives_up_s))
    assert seen(recording, *COLUMNS) == {
        "c": (1.0, 50.0, 50, "finished"),
        "a": (1.0, 4.0, 3, "timed_out"),
        "b": (5.0, 9.0, 5, "finished"),
    }


@pytest.mark.parametrize("name", ["vllm async", "vllm async prefix"])
def test_clients_that_go_in_consecutive_steps_leave_one_after_the_other(name: str) -> None:
    """a goes at 2.5 and leaves at 3, b goes at 3.5 and leaves at 4: the step from 3 to 4 was planned with both.

    Two seats: c is planned at 3 into the step from 4 on, and has its first token at 5. It alone gets all its tokens.
    """
    requests = [
        Request("a", 0.0, 10, 50, gives_up_s=2.5),
        Request("b", 0.0, 10, 50, gives_up_s=3.5),
        Request("c", 0.0, 10, 9),
    ]
    recording = both_ways(lambda: made(name), requests)
    assert seen(recording, *COLUMNS) == {
        "a": (1.0, 3.0, 2, "timed_out"),
        "b": (1.0, 4.0, 3, "timed_out"),
        "c": (5.0, 13.0, 9, "finished"),
    }


@pytest.mark.parametrize("name", ["vllm async", "vllm", "chunked", "static"])
def test_a_client_that_goes_during_its_prompt_gets_nothing(name: str) -> None:
    """The step that completes the prompt ends at 1 s; at 0.5 s the client has gone."""
    recording = both_ways(lambda: made(name), asked(0.5))
    assert seen(recording, *COLUMNS)["a"] == (None, 1.0, 0, "timed_out")


@pytest.mark.parametrize("name", ["vllm async", "vllm", "chunked", "static"])
def test_the_last_token_is_not_delivered_either(name: str) -> None:
    """The tenth token comes at 10 s, the client goes at 9.5 s: nine tokens, and the request has timed out."""
    one = Request("a", 0.0, 10, 10, gives_up_s=9.5)
    recording = both_ways(lambda: made(name), [one, Request("b", 0.0, 10, 30)])
    assert seen(recording, *COLUMNS)["a"] == (1.0, 10.0, 9, "timed_out")
    assert seen(recording, *COLUMNS)["b"] == (1.0, 30.0, 30, "finished")


def test_a_client_gone_in_the_step_that_the_horizon_cuts_has_timed_out_at_the_horizon() -> None:
    """The step from 3 to 4 s is cut at 3.75 s; the client went at 3.5 s, so it is not unfinished."""
    recording = both_ways(lambda: made("chunked"), asked(3.5), horizon_s=3.75)
    assert seen(recording, *COLUMNS)["a"] == (1.0, 3.75, 3, "timed_out")
    assert seen(recording, "status")["c"] == "unfinished"


TIME_S = st.integers(0, 60).map(lambda quarters: quarters / 4)


@st.composite
def traffic(draw: Any) -> list[Request]:
    """Draw requests, most of whose clients give up."""
    arrivals = sorted(draw(st.lists(TIME_S, min_size=2, max_size=8)))
    lengths = st.tuples(st.integers(1, 30), st.integers(1, 20))
    return [
        Request(str(index), arrival_s, *draw(lengths), gives_up_s=arrival_s + 0.25 + draw(TIME_S))
        for index, arrival_s in enumerate(arrivals)
    ]


@pytest.mark.parametrize("name", [*MADE, "vllm", "vllm async", "vllm async prefix"])
@examples(15)
@given(requests=traffic())
def test_nothing_is_delivered_after_the_client_has_gone(name: str, requests: list[Request]) -> None:
    """Under any policy: its last token came in time, and it left by the end of the step that was under way."""
    blocks = 1000 if "static" in name or name == "llamacpp" else 13
    recording = both_ways(lambda: made(name, blocks), requests)
    for request in requests:
        last_s, finish_s, status = seen(recording, "last_token_s", "finish_s", "status")[request.request_id]
        assert status in ("finished", "timed_out")
        assert request.gives_up_s is not None
        if status == "timed_out":
            assert last_s is None or last_s <= request.gives_up_s
            # at the very end of a step, the next one has been planned if two are in flight
            assert request.gives_up_s <= finish_s <= request.gives_up_s + 1
            assert "async" in name or finish_s < request.gives_up_s + 1
