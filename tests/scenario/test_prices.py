"""What the GPUs of a policy cost: the price beside a GPU, prices by name, and the example in the GPU's file."""

import pytest

from simqueue.errors import InputError
from simqueue.hardware import gpu_names, load_gpu
from simqueue.scenario import from_mapping
from simqueue.scenario.prices import cost_of

H100, L40S = (load_gpu(name).price.usd_per_hour for name in ("h100-sxm", "l40s"))


def scenario(**keys):
    """Return a scenario of one policy on an H100."""
    workload = {
        "arrivals": {"process": "poisson", "rate_rps": 2},
        "num_requests": 10,
        "prompt_tokens": {"distribution": "constant", "value": 100},
        "output_tokens": {"distribution": "constant", "value": 10},
    }
    given = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "workload": workload, "policies": {"one": policy()}}
    return from_mapping(given | keys)


def policy(**keys):
    """Return the keys of a policy."""
    return {"scheduler": "chunked", **keys}


def cost(**keys):
    """Return what its policy costs."""
    return cost_of(scenario(**keys).resolve().policies[0])


@pytest.mark.parametrize(
    ("keys", "usd"),
    [
        ({}, H100),
        ({"usd_per_gpu_hour": 2}, 2),
        ({"usd_per_gpu_hour": {"h100-sxm": 2.5, "l40s": 1}}, 2.5),
        ({"usd_per_gpu_hour": {"l40s": 1}}, H100),
        ({"usd_per_gpu_hour": 2, "policies": {"one": policy(gpu="l40s")}}, L40S),
        ({"usd_per_gpu_hour": 2, "policies": {"one": policy(gpu="h100-sxm")}}, 2),
        ({"usd_per_gpu_hour": {"l40s": 0.9}, "policies": {"one": policy(gpu="l40s")}}, 0.9),
        ({"usd_per_gpu_hour": 2, "policies": {"one": policy(gpu="l40s", usd_per_gpu_hour=0.8)}}, 0.8),
        ({"usd_per_gpu_hour": 2, "policies": {"one": policy(usd_per_gpu_hour=None)}}, H100),
    ],
)
def test_the_price_is_the_one_written_for_the_gpu_else_the_example_in_its_file(keys, usd):
    """A number is the price of the GPU beside it, and of no other one."""
    found = cost(**keys)
    assert (found.gpus, found.usd_per_hour, found.why_not) == (1, usd, "")


def test_gpus_of_all_replicas_and_groups_are_paid():
    """tensor_parallel of each replica, at the price of its group; a group with another GPU has not the policy's."""
    groups = {
        "same": {"replicas": 2},
        "other": {"replicas": 3, "gpu": "l40s", "tensor_parallel": 2},
        "own": {"gpu": "mi300x", "usd_per_gpu_hour": 7},
    }
    found = cost(policies={"one": policy(usd_per_gpu_hour=2, fleet={"groups": groups})})
    assert found.gpus == 2 + 3 * 2 + 1
    assert found.usd_per_hour == pytest.approx(2 * 2 + 6 * L40S + 7)


def test_an_unknown_price_is_null_with_its_reason():
    """A GPU without an example, or no GPU at all."""
    found = cost(gpu="mi300x", tensor_parallel=2)
    assert (found.gpus, found.usd_per_hour) == (2, None)
    assert found.why_not == "no price of GPU mi300x; give usd_per_gpu_hour"
    step = {"kind": "constant", "seconds": 0.01}
    keys = {"model": None, "gpu": None, "step_time": step, "kv_cache": {"blocks": 1000}, "max_model_len": 1000}
    assert cost(**keys).why_not == "no price of a policy without gpu; give usd_per_gpu_hour"
    assert cost(**keys, usd_per_gpu_hour=1.5).usd_per_hour == 1.5


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"h100-smx": 2.0}, "usd_per_gpu_hour.h100-smx = 2.0: unknown gpu 'h100-smx'; did you mean 'h100-sxm'?"),
        (0, "usd_per_gpu_hour = 0: must be > 0"),
        ({"l40s": -1}, "usd_per_gpu_hour.l40s = -1: must be > 0"),
        ("cheap", "usd_per_gpu_hour = 'cheap': must be a number > 0 and <= 1e+06 or a mapping"),
    ],
)
def test_wrong_prices_are_one_line(given, line):
    """Where, what value, what is allowed."""
    with pytest.raises(InputError) as caught:
        scenario(usd_per_gpu_hour=given).resolve()
    assert str(caught.value).startswith(line)


def test_the_values_of_a_resolved_scenario_cost_the_same():
    """They are a scenario again."""
    groups = {"same": {}, "other": {"gpu": "l40s"}}
    first = scenario(usd_per_gpu_hour=2, fleet={"groups": groups}).resolve()
    again = from_mapping(first.values).resolve()
    assert again.values == first.values
    assert cost_of(again.policies[0]) == cost_of(first.policies[0])
    assert cost_of(first.policies[0]).usd_per_hour == pytest.approx(2 + L40S)


def test_examples_in_the_library_have_a_date():
    """A price without a date says nothing."""
    prices = [price for name in gpu_names() if (price := load_gpu(name).price) is not None]
    assert prices
    assert all(price.month for price in prices)
