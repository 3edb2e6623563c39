"""Recordings with a value of the wrong kind anywhere: compared, or refused in one line."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from simqueue.conformance import first_routing_difference
from simqueue.datafiles.text import read_json
from simqueue.errors import InputError

FOLDER = Path(__file__).parents[1] / "data" / "routers"
NAMES = [
    "sglang-router-0.3.2/ca_chat",
    "sglang-router-0.3.2/ca_scale",
    "sglang-router-0.3.2/ca_evict",
    "sglang-router-0.3.2/manual_unhealthy",
    "sglang-router-0.3.2/p2c_tokens",
    "sglang-router-0.3.2/pd_bucket",
    "vllm-router-0.1.12/ch_chat_body",
    "vllm-router-0.1.17/sll_sessions",
    "vllm-router-0.1.17/kv_load_0",
    "vllm-router-0.1.17/pd_ca",
]
WRONG: list[Any] = [None, -1, 3, 1e300, "x", [], {}, [1], [[1, 2]], {"a": 1}, True]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a JSON object."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def outcome(recorded: dict[str, Any]) -> str | None:
    """Return the first difference, or why it is no recording; None if it agrees."""
    try:
        return first_routing_difference(recorded)
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_values_are_told_in_one_line(name: str) -> None:
    """Each of 60 files with one value replaced gives a difference, none, or one line that it is no recording."""
    recorded = read_json(FOLDER / f"{name}.json.gz")
    recorded["steps"] = recorded["steps"][:30]
    random = Random(name)
    found = list(places(recorded))
    for _ in range(60):
        altered = copy.deepcopy(recorded)
        path, wrong = random.choice(found), random.choice(WRONG)
        holder = altered
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = wrong
        told = outcome(altered)
        assert told is None or "\n" not in told, path


@pytest.mark.parametrize("piece", [[1, 0, -1], [1, -1, 4], [1, 0], [1, 0, 2.5], [-1, 0, 2]])
def test_a_prompt_that_is_none_is_told_with_its_request(piece: list[Any]) -> None:
    """The line names the request and the piece."""
    recorded = read_json(FOLDER / "sglang-router-0.3.2/ca_chat.json.gz")
    recorded["steps"][1]["messages"][0]["content"] = [piece]
    with pytest.raises(InputError, match=r"request 1: .* is not a piece"):
        first_routing_difference(recorded)
