"""What a policy has room for, against what the simulation serves."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

import simqueue as sq
from simqueue.report.text import comparison_table
from simqueue.scenario import from_mapping
from simqueue.scenario.room import Room, room

CHUNKED = {"scheduler": "chunked", "max_num_seqs": 4, "max_num_batched_tokens": 64}
CONTINUOUS = {"scheduler": "continuous", "max_num_seqs": 4}
VLLM = {"engine": "vllm", "version": "0.33.0", "max_num_seqs": 4, "max_num_batched_tokens": 64}


def keys(policy: dict[str, Any], blocks: int, tokens: int = 2, **more: Any) -> dict[str, Any]:
    """Return a scenario with one request of this many tokens, half of them output."""
    output = max(1, tokens // 2)
    return {
        "step_time": {"kind": "constant", "seconds": 0.01},
        "kv_cache": {"block_size": 4, "blocks": blocks, **more.pop("kv_cache", {})},
        "workload": {
            "requests": [{"id": "a", "arrival_s": 0, "prompt_tokens": tokens - output, "output_tokens": output}]
        },
        "policies": {"p": policy},
        **more,
    }


def found(scenario: dict[str, Any]) -> Room:
    """Return the room of the policy."""
    return room(from_mapping(scenario).resolve().values["policies"]["p"])


@pytest.mark.parametrize(
    ("policy", "blocks", "limit", "layout"),
    [
        (CHUNKED, 1, None, "paged"),
        (CHUNKED, 7, None, "contiguous"),
        (CHUNKED, 30, 120, "paged"),
        (CONTINUOUS, 9, 21, "contiguous"),
        (CONTINUOUS, 9, 200, "paged"),
        (VLLM, 2, None, "paged"),
        (VLLM, 13, 200, "paged"),
        (VLLM, 13, 40, "paged"),
    ],
)
def test_the_longest_request_is_served_and_none_longer(
    policy: dict[str, Any], blocks: int, limit: int | None, layout: str
) -> None:
    """A request of that many tokens finishes; one of one token more is rejected."""
    more: dict[str, Any] = {} if policy is VLLM else {"kv_cache": {"layout": layout}}
    if limit is not None:
        more["max_model_len"] = limit
    longest = found(keys(policy, blocks, **more)).longest_request_tokens
    assert longest is not None
    served, refused = (
        sq.run(keys(policy, blocks, tokens, **more)).summary_rows[0] for tokens in (longest, longest + 1)
    )
    assert served["completed"] == 1
    if policy is not VLLM or limit is None or longest < limit:  # vLLM cuts outputs at max_model_len
        assert refused["rejected"] == 1


def test_the_pool_is_blocks_times_their_size() -> None:
    """25 blocks of 4 tokens; with a limit of 60 the longest request has 60."""
    assert found(keys(CHUNKED, 25)) == Room(100, 101)
    assert found(keys(CHUNKED, 25, max_model_len=60)) == Room(100, 60)


def test_a_reservation_of_max_model_len_must_fit_as_a_whole() -> None:
    """A slot of 60 tokens fits 100, so that requests of 60 do; one of 120 does not, and nothing is served."""
    slots = {"layout": "contiguous", "reserve": "model_max"}
    assert found(keys(CONTINUOUS, 25, kv_cache=slots, max_model_len=60)).longest_request_tokens == 60
    assert found(keys(CONTINUOUS, 25, kv_cache=slots, max_model_len=120)).longest_request_tokens is None


@pytest.mark.parametrize(("unified", "longest"), [(True, 40), (False, 10)])
def test_a_slot_of_llama_cpp_holds_its_context(unified: bool, longest: int) -> None:
    """A request of that many tokens gets its whole output; one of one token more is cut, as in the server."""
    policy = {"scheduler": "llamacpp", "n_parallel": 4, "n_ctx": 40, "kv_unified": unified}
    assert found(keys(policy, 100)).longest_request_tokens == longest
    whole, cut = (sq.run(keys(policy, 100, asked)).requests for asked in (longest, longest + 1))
    assert whole["tokens_emitted"].tolist() == whole["output_tokens"].tolist()
    assert cut["tokens_emitted"].tolist() != cut["output_tokens"].tolist()


def test_a_result_without_the_size_has_none() -> None:
    """Unknown is null, not 0."""
    assert room({"kv_cache": {"blocks": "auto", "block_size": 16}}) == Room(None, None)
    assert room({}) == Room(None, None)


def test_the_table_of_a_run_shows_both() -> None:
    """Among the lines of the machine."""
    screen = StringIO()
    result = sq.run(keys(CHUNKED, 300, max_model_len=1100))
    Console(file=screen, width=100, color_system=None).print(comparison_table(result))
    lines = [line.split() for line in screen.getvalue().splitlines()]
    assert ["KV", "pool", "(tok)", "1,200"] in lines
    assert ["max", "request", "(tok)", "1,100"] in lines


def test_validate_shows_both(command: Any, scenario_file: Any) -> None:
    """Below the keys of each policy."""
    shown = command("validate", scenario_file(keys(CHUNKED, 300, max_model_len=1100)))
    lines = [line.split() for line in shown.out.splitlines()]
    assert ["KV", "pool", "(tokens)", "1,200"] in lines
    assert ["longest", "request", "(tokens)", "1,100"] in lines
