"""The capacity where clients have a limited number of requests in flight, and a front end has some of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simqueue.experiment import run
from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.policy_load import PolicyLoad
from simqueue.scenario import from_mapping

STEP_S, OUTPUT = 0.02, 10
EVEN = {"kind": "constant", "seconds": STEP_S}
LINEAR = {"kind": "linear", "overhead_s": 0.005, "per_decode_s": 3e-4, "per_prefill_token_s": 3e-5}
GEOMETRIC, EQUAL = {"distribution": "geometric", "mean": OUTPUT}, {"distribution": "constant", "value": OUTPUT}

ONE = {"distribution": "constant", "value": 1}


def scenario(clients: int, front_end: dict[str, float], **more: Any) -> dict[str, Any]:
    """Return clients that always have that many requests in flight."""
    return {
        "step_time": more.pop("step_time", EVEN),
        "kv_cache": {"blocks": 100_000},
        "front_end": front_end,
        "workload": {
            "arrivals": more.pop("arrivals", {"process": "poisson", "rate_rps": 1000.0}),
            "prompt_tokens": more.pop("prompt_tokens", {"distribution": "constant", "value": 100}),
            "output_tokens": more.pop("output_tokens", GEOMETRIC),
            "num_requests": more.pop("num_requests", 1000),
            "max_concurrency": clients,
        },
        "policies": {"p": {"scheduler": "continuous", "max_num_seqs": 64} | more},
    }


def load_of(made: dict[str, Any]) -> PolicyLoad:
    """Return what is said of the policy."""
    return policy_loads(from_mapping(made).resolve())["p"]


def carried_rps(made: dict[str, Any]) -> float:
    """Return the simulated throughput between the first and the last tenth of the completions."""
    ends_s = np.sort(run(made, workers=1).requests["finish_s"])
    first, last = len(ends_s) // 10, 9 * len(ends_s) // 10
    return float((last - first) / (ends_s[last] - ends_s[first]))


@pytest.mark.parametrize("key", ["network_ms", "first_token_ms"])
@pytest.mark.parametrize("output", [GEOMETRIC, EQUAL])
def test_a_place_is_held_in_the_front_end_too(key: str, output: dict[str, Any]) -> None:
    """Four places, each for 500 ms and 10 steps, or for the longer of both; and up to a step until a step begins."""
    made = scenario(4, {key: 500}, output_tokens=output)
    steps = np.arange(1, 2000)
    shares = (1 - 1 / OUTPUT) ** (steps - 1) / OUTPUT if output is GEOMETRIC else (steps == OUTPUT).astype(float)
    away_s = 0.5 + steps * STEP_S if key == "network_ms" else np.maximum(0.5 + STEP_S, steps * STEP_S)
    held_s = float(shares @ away_s)
    found = load_of(made)
    assert found.capacity is not None
    assert not found.doubt
    assert 4 / (held_s + STEP_S) <= found.capacity.max_rate_rps <= 4 / held_s
    assert found.capacity.max_rate_rps == pytest.approx(carried_rps(made), rel=0.03)
    # Little's law; the capacity of one seat is that of a sample of lengths
    assert found.capacity.running == pytest.approx(found.capacity.max_rate_rps * OUTPUT * STEP_S, rel=0.01)
    assert found.load == pytest.approx(1000 / found.capacity.max_rate_rps)


def test_one_request_in_flight_waits_for_nobody() -> None:
    """One place, held for 20 ms and 10 steps."""
    found = load_of(scenario(1, {"network_ms": 15, "request_ms": 5}, output_tokens=EQUAL)).capacity
    assert found is not None
    assert found.max_rate_rps == pytest.approx(1 / (0.02 + OUTPUT * STEP_S))


@pytest.mark.parametrize(
    "made",
    [
        scenario(16, {"request_ms": 10}),
        scenario(16, {"request_ms": 10}, output_tokens=EQUAL),
        scenario(16, {"network_ms": 300}, output_tokens=EQUAL, step_time=LINEAR),
        scenario(16, {"network_ms": 300}, output_tokens=EQUAL, step_time=LINEAR, scheduler="chunked"),
        scenario(32, {"first_token_ms": 300, "request_ms": 3}, step_time=LINEAR),
        scenario(32, {"output_us": 300}, step_time=LINEAR),
        scenario(
            8,
            {"network_ms": 50, "first_token_ms": 800},
            step_time=LINEAR,
            output_tokens={"distribution": "constant", "value": 100},
            prompt_tokens={"distribution": "constant", "value": 300},
        ),
        scenario(3, {"request_ms": 20, "first_token_ms": 800}, step_time=LINEAR, output_tokens=ONE),
        scenario(10, {"network_ms": 100}, max_num_seqs=8),
        scenario(12, {"network_ms": 100}, max_num_seqs=8, output_tokens=EQUAL),
        scenario(16, {"network_ms": 100}, max_num_seqs=8),
    ],
    ids=str,
)
def test_what_is_simulated_is_within_the_bounds(made: dict[str, Any]) -> None:
    """Requests wait for the front end or not, come together or not: bounds where it matters, else the usual 3 %."""
    found, simulated_rps = load_of(made), carried_rps(made)
    assert found.capacity is not None
    rate_rps = found.capacity.max_rate_rps
    low_rps, high_rps = (found.low_rps, found.high_rps) if found.doubt else (0.97 * rate_rps, 1.03 * rate_rps)
    assert low_rps is not None
    assert high_rps is not None
    assert low_rps <= simulated_rps <= high_rps
    assert low_rps <= rate_rps <= high_rps


def test_without_a_front_end_the_places_are_seats() -> None:
    """And with one that takes little beside the answers, they lose half a step: the capacity is as sure as without."""
    bare, near = (load_of(scenario(4, {"network_ms": ms})) for ms in (0, 0.1))
    assert bare.capacity is not None
    assert bare.capacity.max_rate_rps == pytest.approx(4 / (OUTPUT * STEP_S), rel=1e-3)
    assert near.capacity is not None
    assert near.capacity.max_rate_rps == pytest.approx(bare.capacity.max_rate_rps, rel=0.07)


def test_waves_of_few_clients_are_not_sure() -> None:
    """Nothing is known of how full they are: no bounds."""
    found = load_of(scenario(16, {"network_ms": 300}, scheduler="static", max_num_seqs=8, step_time=LINEAR))
    assert found.doubt.startswith("clients limit the requests in flight")
    assert (found.low_rps, found.high_rps) == (None, None)
