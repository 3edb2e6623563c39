"""Promises of whole workloads: exactly one source, determinism, separate streams."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from simqueue.traffic import Traffic
from simqueue.workload import WorkloadSettings
from simqueue.workload.generate import generate
from simqueue.workload.streams import stream

DATA = Path(__file__).parents[2] / "scenarios" / "data"

SYNTHETIC: dict[str, Any] = {
    "arrivals": {"process": "poisson", "rate_rps": 16},
    "arrivals_for_s": 30,
    "prompt_tokens": {"distribution": "lognormal", "median": 700, "sigma": 0.9, "min": 64, "max": 4096},
    "output_tokens": {"distribution": "geometric", "mean": 110},
}


def traffic(workload: dict[str, Any], **keys: Any) -> Traffic:
    """Return the traffic of a workload written as keys."""
    return generate(WorkloadSettings.model_validate(workload), base_dir=DATA, **{"seed": 1234, **keys})


def test_same_seed_same_requests() -> None:
    """The same settings and seed give the same requests; another seed or replication gives others."""
    once = traffic(SYNTHETIC)
    assert traffic(SYNTHETIC) == once
    assert traffic(SYNTHETIC, seed=1235).requests != once.requests
    assert traffic(SYNTHETIC, replication=1).requests != once.requests
    assert [r.request_id for r in once.requests] == [str(i) for i in range(len(once.requests))]
    assert all(r.arrival_s < 30 for r in once.requests)


def test_another_process_and_hash_seed_give_the_same_bytes() -> None:
    """Case 52: two processes with different hash seeds print the same requests."""
    code = (
        "from pathlib import Path; from simqueue.workload import *; from simqueue.workload.generate import *; "
        f"w = WorkloadSettings.model_validate({SYNTHETIC!r}); print(generate(w, seed=1, base_dir=Path()))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1")
    ]
    assert printed[0] == printed[1]
    assert b"Request(request_id='0'" in printed[0]


def test_streams_are_apart() -> None:
    """Changing a length distribution leaves arrivals and the other lengths unchanged: common random numbers."""
    before = traffic(SYNTHETIC).requests
    after = traffic({**SYNTHETIC, "prompt_tokens": {"distribution": "constant", "value": 9}}).requests
    assert [(r.arrival_s, r.output_tokens) for r in before] == [(r.arrival_s, r.output_tokens) for r in after]
    faster = traffic({**SYNTHETIC, "arrivals": {"process": "constant", "rate_rps": 20}}).requests
    n = min(len(before), len(faster))
    assert [r.prompt_tokens for r in before[:n]] == [r.prompt_tokens for r in faster[:n]]


def test_streams_are_named() -> None:
    """A stream depends on seed, replication and purpose, and on nothing that was drawn elsewhere."""
    draws = [
        stream(1, 0, "a").random(),
        stream(1, 0, "b").random(),
        stream(1, 1, "a").random(),
        stream(2, 0, "a").random(),
    ]
    assert len(set(draws)) == 4
    assert stream(1, 0, "a").random() == draws[0]


def test_listed_requests_come_in_order_of_arrival() -> None:
    """Listed requests are sorted by arrival, ties by position; ids are text, given or the position."""
    listed = [
        {"id": "late", "arrival_s": 2, "prompt_tokens": 5, "output_tokens": 6, "class": "chat", "priority": -1},
        {"id": 7, "arrival_s": 0, "prompt_tokens": 1, "output_tokens": 2, "deadline_s": 3.5},
        {"arrival_s": 0.0, "prompt_tokens": 3, "output_tokens": 4},
    ]
    requests = traffic({"requests": listed}).requests
    assert [(r.request_id, r.arrival_s, r.prompt_tokens, r.output_tokens) for r in requests] == [
        ("7", 0, 1, 2),
        ("2", 0, 3, 4),
        ("late", 2, 5, 6),
    ]
    assert [(r.priority, r.deadline_s, r.request_class) for r in requests] == [
        (0, 3.5, None),
        (0, None, None),
        (-1, None, "chat"),
    ]


def test_listed_requests_may_say_which_tokens_they_have() -> None:
    """prompt is pieces of streams, whose lengths give prompt_tokens; timeouts become absolute times."""
    listed = [
        {"arrival_s": 2, "prompt": [[7, 0, 64], [8, 0, 20]], "output_tokens": 4, "output_stream": 9, "timeout_s": 1.5},
        {"arrival_s": 2, "prompt": [[7, 0, 64]], "prompt_tokens": 64, "output_tokens": 4},
    ]
    first, second = traffic({"requests": listed}).requests
    assert (first.prompt_tokens, first.prompt, first.output_stream) == (84, ((7, 0, 64), (8, 0, 20)), 9)
    assert first.gives_up_s == 3.5
    assert (second.prompt, second.output_stream, second.gives_up_s) == (((7, 0, 64),), None, None)


def test_no_requests_is_allowed_and_said() -> None:
    """A horizon that is too short for any request gives no requests and a note, not an error."""
    empty = traffic({**SYNTHETIC, "arrivals_for_s": 1e-9})
    assert (empty.requests, empty.notes) == ([], ("the workload has no requests",))
    assert traffic({"requests": []}).notes == ("the workload has no requests",)


ONE = {"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 1}
TRACE = {"name": "azure-2023-code"}


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ({}, "exactly one of arrivals, trace, requests, users, sessions; found: none"),
        ({"trace": TRACE, "requests": [ONE]}, "found: trace and requests"),
        ({**SYNTHETIC, "trace": TRACE}, "found: arrivals and trace"),
        ({"trace": TRACE, "arrivals_for_s": 3}, "arrivals_for_s\n  cannot be combined with trace; use trace.end_s"),
        (
            {"trace": TRACE, "prompt_tokens": SYNTHETIC["prompt_tokens"]},
            "prompt_tokens\n  cannot be combined with trace",
        ),
        ({"requests": [ONE], "num_requests": 1}, "num_requests\n  cannot be combined with requests"),
        ({**SYNTHETIC, "output_tokens": None}, "arrivals need output_tokens"),
        ({**SYNTHETIC, "arrivals_for_s": None}, "num_requests or arrivals_for_s"),
        ({**SYNTHETIC, "arrivals": {"process": "all_at_once"}}, "all_at_once needs num_requests"),
        ({**SYNTHETIC, "arrivals": {"process": "poison", "rate_rps": 1}}, "'poisson'"),
        ({**SYNTHETIC, "arrivals": {"process": "poisson", "rate": 1}}, "did you mean 'rate_rps'?"),
        ({**SYNTHETIC, "arrivals_for_s": 0}, "greater than 0"),
        ({**SYNTHETIC, "num_requests": 2.0}, "valid integer"),
        ({"requests": [{**ONE, "id": "a"}, {**ONE, "id": "a"}]}, "id 'a' is used twice, by items 0 and 1"),
        ({"requests": [{**ONE, "id": 1}, ONE]}, "id '1' is used twice"),
        ({"requests": [{**ONE, "id": ""}]}, "at least 1 character"),
        ({"requests": [{**ONE, "id": True}]}, "valid string"),
        ({"requests": [{**ONE, "output_tokens": 0}]}, "greater than or equal to 1"),
        ({"requests": [{**ONE, "arrival_s": math.nan}]}, "finite number"),
        (
            {"requests": [{**ONE, "arrival_s": 5, "deadline_s": 4}]},
            "deadline_s\n  must be at least arrival_s, which is 5",
        ),
        ({"requests": [{**ONE, "timeout_s": 0}]}, "greater than 0"),
        ({"requests": [{**ONE, "prompt": [[1, 0, 2]]}]}, "the pieces have 2 tokens, prompt_tokens is 1"),
        ({"requests": [{**ONE, "prompt": [[1, 0, 0], [1, 0, 1]]}]}, "integers of at least 0, 0 and 1"),
        ({"requests": [{**ONE, "prompt": []}]}, "at least 1 item"),
        ({"requests": [{"arrival_s": 0, "output_tokens": 1}]}, "prompt_tokens is missing; give it, or prompt"),
    ],
)
def test_wrong_workloads_are_rejected(workload: dict[str, Any], said: str) -> None:
    """Exactly one source, complete and without keys that belong to another; messages name the keys."""
    with pytest.raises(ValidationError) as caught:
        WorkloadSettings.model_validate(workload)
    assert said in str(caught.value)


def test_module08_file_is_its_recipe() -> None:
    """scenarios/data/module08.csv holds the 429 requests of the course module's recipe, to the last bit."""
    rng = random.Random(1234)
    expected: list[tuple[float, int, int]] = []
    at_s = rng.expovariate(16)
    while at_s < 30:
        prompt = int(min(max(rng.lognormvariate(math.log(700), 0.9), 64), 4096))
        output = int(min(max(rng.lognormvariate(math.log(110), 0.6), 16), 384))
        expected.append((at_s, prompt, output))
        at_s += rng.expovariate(16)
    played = traffic({"trace": {"format": "csv", "path": "module08.csv", "origin": "file"}})
    assert [(r.arrival_s, r.prompt_tokens, r.output_tokens) for r in played.requests] == expected
    assert len(expected) == 429
    assert round(sum(p for _, p, _ in expected) / 429) == 1051
    assert round(sum(o for _, _, o in expected) / 429) == 129


def test_settings_are_light_to_import() -> None:
    """Reading settings imports neither numpy, pandas, scipy, simpy nor a plotting library."""
    heavy = "{'numpy','pandas','scipy','simpy','matplotlib'}"
    code = f"import sys, simqueue.workload; print(sorted({heavy} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert out.strip() == "[]"
