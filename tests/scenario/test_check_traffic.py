"""Checks that the requests of a scenario can be made, without making them."""

from typing import Any

import pytest

from simqueue.errors import InputError
from simqueue.scenario import Scenario, from_mapping
from simqueue.scenario.traffic import make_traffic

HUNDRED_MILLION = 100_000_000
LENGTHS = {
    "prompt_tokens": {"distribution": "lognormal", "median": 100, "sigma": 1},
    "output_tokens": {"distribution": "constant", "value": 10},
}
PIECES = [{"for_s": 1, "rate_rps": 5}]


def scenario(workload: dict[str, Any], *, several: bool = False) -> Scenario:
    """Return a scenario with this workload, alone or as the second of two."""
    constant = {"arrivals": {"process": "constant", "rate_rps": 1}, "num_requests": 1, **LENGTHS}
    traffic = {"workloads": {"first": constant, "second": workload}} if several else {"workload": workload}
    return from_mapping(
        {
            "step_time": {"kind": "constant", "seconds": 0.01},
            "kv_cache": {"blocks": 100},
            "policies": {"chunked": {"scheduler": "chunked"}},
            **traffic,
        }
    )


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "workload",
    [
        {"arrivals": {"process": "poisson", "rate_rps": 1e6}, "arrivals_for_s": 1000, **LENGTHS},
        {"arrivals": {"process": "gamma", "rate_rps": 1e-14, "cv": 2}, "num_requests": 1000, **LENGTHS},
        {"arrivals": {"process": "constant", "rate_rps": 1e-14}, "num_requests": 1000, **LENGTHS},
        {"arrivals": {"process": "all_at_once"}, "num_requests": 2 * HUNDRED_MILLION, **LENGTHS},
        {"arrivals": {"process": "ramp", "from_rps": 1, "to_rps": 1e-14}, "num_requests": 1000, **LENGTHS},
        {
            "arrivals": {"process": "on_off", "rate_rps": 1e6, "peak_to_mean": 2, "mean_burst_s": 1},
            "arrivals_for_s": 1000,
            **LENGTHS,
        },
        {
            "arrivals": {"process": "sinusoid", "rate_rps": 6e4, "amplitude": 1, "period_s": 60},
            "arrivals_for_s": 1000,
            **LENGTHS,
        },
        {"arrivals": {"process": "piecewise", "pieces": PIECES}, "num_requests": 1000, **LENGTHS},
        {
            "arrivals": {"process": "batches", "rate_rps": 1e6, "batch_size": {"distribution": "constant", "value": 5}},
            "arrivals_for_s": 1000,
            **LENGTHS,
        },
        {"arrivals": {"process": "curve", "category": "c", "path": "none.csv"}, "num_requests": 1, **LENGTHS},
        {
            "arrivals": {"process": "poisson", "rate_rps": 1},
            "num_requests": 1,
            **LENGTHS,
            "prompt_tokens": {"distribution": "empirical", "path": "none.csv"},
        },
        {"trace": {"format": "csv", "path": "none.csv"}},
    ],
)
def test_refuses_what_cannot_be_made(workload: dict[str, Any], several: bool) -> None:
    """The check raises the same error as making the requests."""
    asked = scenario(workload, several=several)
    with pytest.raises(InputError) as made:
        make_traffic(asked.resolve())
    with pytest.raises(InputError) as checked:
        asked.resolve().check_traffic()
    assert str(checked.value) == str(made.value)


@pytest.mark.parametrize(
    "arrivals",
    [
        {"process": "poisson", "rate_rps": 10},
        {"process": "gamma", "rate_rps": 10, "cv": 2},
        {"process": "weibull", "rate_rps": 10, "cv": 2},
        {"process": "constant", "rate_rps": 10},
        {"process": "all_at_once"},
        {"process": "mmpp", "rate_rps": 10, "peak_to_mean": 4, "mean_burst_s": 5, "calm_to_mean": 0.5},
        {"process": "sinusoid", "rate_rps": 10, "amplitude": 0, "period_s": 60},
        {"process": "piecewise", "pieces": PIECES, "repeat": True},
        {"process": "ramp", "from_rps": 1, "to_rps": 10},
    ],
)
def test_makes_no_requests(arrivals: dict[str, Any]) -> None:
    """A hundred million requests, which would take gigabytes, are checked without being made."""
    scenario({"arrivals": arrivals, "num_requests": HUNDRED_MILLION, **LENGTHS}).resolve().check_traffic()


def test_draws_where_only_that_tells() -> None:
    """A curve that ends has 5 arrivals on average: 1000 are too many, and no fixed number is fine."""
    arrivals = {"process": "piecewise", "pieces": PIECES}
    scenario({"arrivals": arrivals, "arrivals_for_s": 1, **LENGTHS}).resolve().check_traffic()
    with pytest.raises(InputError, match=r"ends after 1 s with \d+ requests, but the workload needs 1000"):
        scenario({"arrivals": arrivals, "num_requests": 1000, **LENGTHS}).resolve().check_traffic()
