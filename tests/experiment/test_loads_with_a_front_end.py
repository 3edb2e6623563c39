"""Capacity, load, estimates and curves with a front end, by hand and against the same server without one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.policy_load import PolicyLoad
from simqueue.experiment.rates import curves
from simqueue.frontend import FrontEndTimes
from simqueue.scenario import ResolvedScenario, from_mapping
from simqueue.theory.front_end import behind_front_end
from simqueue.theory.lengths import from_moments
from simqueue.theory.limits import Capacity, Limit

from ..helpers.profiles import examples

SEATS, OUTPUT, STEP_S = 64, 10, 0.03
LENGTHS = from_moments((100.0, 0.0), (10.0, 0.0), np.array([100]), np.array([10]))


def resolved(front_end: dict[str, float] | None, rate_rps: float = 19.0, **more: Any) -> ResolvedScenario:
    """Return a server that carries 213 req/s, in steps of one duration."""
    made = {
        "step_time": {"kind": "constant", "seconds": STEP_S},
        "kv_cache": {"blocks": 100_000},
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": rate_rps},
            "prompt_tokens": {"distribution": "constant", "value": 100},
            "output_tokens": {"distribution": "geometric", "mean": OUTPUT},
            "num_requests": 1000,
        }
        | more,
        "policies": {"p": {"scheduler": "continuous", "max_num_seqs": SEATS}},
    }
    return from_mapping(made if front_end is None else made | {"front_end": front_end}).resolve()


def load_of(front_end: dict[str, float] | None, rate_rps: float = 19.0, **more: Any) -> PolicyLoad:
    """Return what is said of the policy."""
    return policy_loads(resolved(front_end, rate_rps, **more))["p"]


def test_a_curve_is_that_of_the_table() -> None:
    """Capacity 1 / 50 ms, and at every rate the estimates of a scenario with that rate, with the wait."""
    front_end = {"request_ms": 50, "network_ms": 100}
    (line,) = curves(resolved(front_end), points=6)
    assert line.capacity_rps == pytest.approx(20)
    for i, rate in enumerate(line.rates_rps):
        point, at = load_of(front_end, rate).estimate, {name: values[i] for name, values in line.values.items()}
        assert at["mean_ttft_ms"] == (None if point is None else pytest.approx(1000 * point.ttft_s))
        assert at["mean_tpot_ms"] == (None if point is None else pytest.approx(1000 * point.tpot_s))
        assert at["request_throughput"] == pytest.approx(min(rate, 20))


def test_the_gpu_is_not_saturated_behind_a_front_end_that_limits() -> None:
    """What runs at saturation is not known then; without a front end it is the seats."""
    slow, fast, none = (load_of(front_end).plain() for front_end in ({"request_ms": 50}, {"request_ms": 1}, None))
    keys = ("steps_per_request", "saturated_step_ms", "saturated_running")
    assert [slow[key] for key in keys] == [None] * 3
    assert [fast[key] for key in keys] == [none[key] for key in keys]
    assert none["saturated_running"] == pytest.approx(SEATS)
    assert slow["estimated_running"] == pytest.approx(19 * OUTPUT * STEP_S, rel=0.01)  # Little's law


@given(
    front_rps=st.floats(1, 1000),
    rate_rps=st.floats(1, 1000),
    low=st.none() | st.floats(0.1, 1),
    high=st.none() | st.floats(1, 10),
)
@examples(60)
def test_a_front_end_bounds_what_is_not_sure(
    front_rps: float, rate_rps: float, low: float | None, high: float | None
) -> None:
    """Of a server whose capacity is any within its bounds, the one with a front end is the smaller of the two."""
    least, most = (None if share is None else share * rate_rps for share in (low, high))
    alone = Limit(Capacity(rate_rps, "slots", {"slots": rate_rps}, 1.0, 1.0, 1.0), least, most, "doubt")
    found = behind_front_end(alone, FrontEndTimes(request_s=1 / front_rps), LENGTHS)
    assert found.capacity.max_rate_rps == pytest.approx(min(rate_rps, front_rps))
    most_rps = 1 / (1 / front_rps)
    if least is not None and least >= most_rps:
        assert found == Limit(found.capacity)
    else:
        assert (found.low_rps, found.high_rps, found.doubt) == (least, min(most or np.inf, most_rps), "doubt")
        assert "the error of the capacity is not known" not in found.caution
