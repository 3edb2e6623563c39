"""The module's traffic and policies, simulated at several loads with two step costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from simqueue.errors import RunError
from simqueue.experiment import run
from simqueue.results.result import Result
from simqueue.statistics.intervals import mean_interval

SEATS: Final = 32
CHUNKS: Final = (8, 32, 128, 512)
SEED: Final = 1234
LENGTHS: Final = {
    "prompt_tokens": {"distribution": "lognormal", "median": 700, "sigma": 0.9, "min": 64, "max": 4096},
    "output_tokens": {"distribution": "lognormal", "median": 110, "sigma": 0.6, "min": 16, "max": 384},
}
POLICIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "static": {"scheduler": "static", "max_num_seqs": SEATS, "emit": "wave_end"},
    "continuous": {"scheduler": "continuous", "max_num_seqs": SEATS},
    **{f"chunked-{n}": {"scheduler": "chunked", "max_num_seqs": SEATS, "chunk_tokens": n} for n in reversed(CHUNKS)},
}


@dataclass(frozen=True, slots=True)
class Cost:
    """A step cost that the claims are tested with.

    Attributes
    ----------
    name : str
    keys : mapping
        Its keys in a scenario.
    rates_rps : tuple of float
        Arrival rates, from a light load to more than any policy can serve.
    """

    name: str
    keys: Mapping[str, Any]
    rates_rps: tuple[float, ...]


def linear(fixed: float = 1.0) -> dict[str, Any]:
    """Return the module's own step cost; `fixed` scales all terms but the one per prompt token."""
    per_step = {"overhead_s": 0.2e-3, "decode_base_s": 0.4e-3, "per_decode_s": 0.03e-3}
    scaled = {name: fixed * seconds for name, seconds in per_step.items()}
    return {
        "step_time": {"kind": "linear", **scaled, "per_prefill_token_s": 0.02e-3},
        "kv_cache": {"blocks": 1_000_000},
    }


LINEAR: Final = Cost("the module's linear cost", linear(), (2.0, 4.0, 8.0, 16.0, 32.0, 44.0))
H100: Final = Cost(
    "Llama 3.1 8B on an H100 (preset vllm-h100-kernels)",
    {
        "model": "llama-3.1-8b",
        "gpu": "h100-sxm",
        "step_time": {"kind": "roofline", "preset": "vllm-h100-kernels"},
    },
    (1.0, 4.0, 10.0, 16.0, 20.0, 28.0),
)
COSTS: Final = (LINEAR, H100)


def run_traffic(
    keys: Mapping[str, Any],
    rate_rps: float,
    policies: Mapping[str, Any] = POLICIES,
    *,
    replications: int = 5,
    seconds: float = 20.0,
) -> Result:
    """Simulate Poisson traffic with the module's lengths; all policies see the same requests in each replication."""
    arrivals = {"process": "poisson", "rate_rps": rate_rps}
    return run(
        {
            "name": "module08",
            "seed": SEED,
            "workload": {"arrivals": arrivals, "arrivals_for_s": seconds, **LENGTHS},
            "policies": dict(policies),
            "replications": replications,
            **keys,
        }
    )


def over_rates(cost: Cost) -> dict[float, Result]:
    """Return the results of all policies at each arrival rate of a cost."""
    return {rate: run_traffic(cost.keys, rate) for rate in cost.rates_rps}


def rate_at(keys: Mapping[str, Any], load: float) -> float:
    """Return the arrival rate at which the offered load of continuous is `load`, with a given cost."""
    light = run_traffic(keys, 4.0, {"continuous": POLICIES["continuous"]}, replications=1, seconds=5)
    found = loads(light, ["continuous"])["continuous"]
    if found is None:
        raise RunError("bug: the load of continuous at 4 requests/s is unknown")
    return 4.0 * load / found


def ratio(result: Result, metric: str, policy: str, base: str) -> tuple[float, float | None] | None:
    """Return the ratio of a metric of two policies: its mean over replications and its 95 % half-width.

    The ratio is taken within each replication, in which both policies see the same traffic. None if it is undefined.
    """
    return _paired(_values(result, metric, policy), _values(result, metric, base))


def spread(result: Result, high: str, low: str, policy: str) -> tuple[float, float | None] | None:
    """Return the ratio of two metrics of one policy, such as a percentile over the median; see `ratio`."""
    return _paired(_values(result, high, policy), _values(result, low, policy))


def value(result: Result, metric: str, policy: str) -> float | None:
    """Return the mean of a metric over all replications, also overloaded ones; None if it is undefined."""
    known = [float(v) for v in _values(result, metric, policy) if isinstance(v, int | float)]
    return sum(known) / len(known) if known else None


def loads(result: Result, policies: Sequence[str]) -> dict[str, float | None]:
    """Return the offered load of each policy, as a share of its capacity; None if it is unknown."""
    rows = {row["policy"]: row["load"] for row in result.summary_rows}
    return {name: load if isinstance(load := rows.get(name), float) else None for name in policies}


def _paired(values: Sequence[Any], bases: Sequence[Any]) -> tuple[float, float | None] | None:
    ratios = [
        float(own) / float(other)
        for own, other in zip(values, bases, strict=True)
        if isinstance(own, int | float) and isinstance(other, int | float) and other > 0
    ]
    if not ratios:
        return None
    found = mean_interval(ratios)
    return found.value, found.half_width


def _values(result: Result, metric: str, policy: str) -> list[Any]:
    return [row[metric] for row in result.replication_rows if row["policy"] == policy and row["request_class"] == "all"]
