"""Results travel between processes, whatever was read from them before."""

from __future__ import annotations

import copy
import pickle
from inspect import getmembers_static
from typing import Any

import pytest

from simqueue.experiment import run
from simqueue.results.result import Result

CLASSES = {
    name: {
        "arrivals": {"process": "poisson", "rate_rps": 3},
        "prompt_tokens": {"distribution": "constant", "value": 20},
        "output_tokens": {"distribution": "uniform", "low": 1, "high": 9},
        "num_requests": 30,
    }
    for name in ("chat", "code")
}
BASE: dict[str, Any] = {
    "name": "travel",
    "step_time": {"kind": "constant", "seconds": 0.1},
    "kv_cache": {"blocks": 50},
    "workloads": CLASSES,
    "policies": {"chunked": {"scheduler": "chunked", "max_num_seqs": 2}, "static": {"scheduler": "static"}},
    "slo": {"ttft_ms": 500},
}
FEW = {"min_replications": 3, "max_replications": 4}
KINDS: dict[str, dict[str, Any]] = {
    "one": {},
    "one cut": {"warmup_s": 2.0},
    "cut by itself": {"warmup_s": "auto"},
    "replicated": {"replications": 3},
    "replicated and cut": {"replications": 3, "warmup_s": 2.0},
    "fleets": {"fleet": {"replicas": 2, "router": "least_outstanding", "failures": {"mtbf_s": 5, "repair_s": 1}}},
    "to a precision": {"precision": {"metric": "mean_ttft_ms", "relative": 0.5} | FEW},
}


def read_all(result: Result) -> None:
    """Ask for everything that a result computes when it is asked."""
    for name, member in getmembers_static(Result):
        if not name.startswith("__") and (isinstance(member, property) or type(member).__name__ == "cached_property"):
            getattr(result, name)
    for policy in result.policies:
        result.gap_curve(policy)
        result.last_token_s(policy)
    if not result.replicated:
        result.one_run_intervals()
    result.to_json()
    repr(result)


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_that_was_read_can_be_pickled_and_copied(kind: str) -> None:
    """What it keeps for later travels with it."""
    result = run(BASE | KINDS[kind])
    read_all(result)
    for back in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):  # noqa: S301 - ours
        assert back.to_json() == result.to_json()
        assert back.warnings == result.warnings
