"""Prefill in separate steps costs capacity: at some rates mixed batching is stable and prefill-first is not."""

from drawing import POOL, constant, geometric, linear, main, whole

from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.rates import curves, simulated
from simqueue.figures.capacity import capacity_figure
from simqueue.scenario import from_mapping


def measure(small):
    loaded = from_mapping(
        {
            "name": "prefill-separate-or-mixed",
            "seed": 1,
            "step_time": linear(0.02, 5e-4, 2e-5),
            "kv_cache": POOL,
            "workload": {
                "arrivals": {"process": "poisson", "rate_rps": 7.7},
                "prompt_tokens": constant(500),
                "output_tokens": geometric(100),
                "num_requests": 100,
            },
            "policies": {"mixed": whole(32), "separate": whole(32, prefill="separate")},
        }
    ).resolve()
    for name, found in policy_loads(loaded).items():
        print(f"{name:9s} capacity {found.capacity.max_rate_rps:.3f} requests/s, load at 7.7: {found.load:.3f}")
    rates = [3.0] if small else [3.0, 6.0, 7.0, 7.7, 8.6]
    points = simulated(loaded, rates, replications=2 if small else 5, requests=60 if small else 2500)
    for one in points:
        ttft = one.values["mean_ttft_ms"]
        shown = "overloaded" if one.overloaded else f"TTFT {ttft.value:.0f} ±{ttft.half_width:.0f} ms"
        print(f"{one.policy:9s} rate {one.rate_rps}: {shown}")
    return capacity_figure(curves(loaded), points, loaded.name)


if __name__ == "__main__":
    main("prefill_first", measure)
