"""Coverage of intervals over replications: M/M/1 at a load of 0.8, by Lindley's recursion and simulated."""

import argparse

import numpy as np
from drawing import POOL, constant, geometric, linear, whole

import simqueue as sq
from simqueue.statistics.intervals import mean_interval

LOAD, CUSTOMERS, REPLICATIONS = 0.8, 5000, 10


def lindley(macro, seed=20_240_501):
    rng, runs = np.random.default_rng(seed), macro * REPLICATIONS
    wait, total = np.zeros(runs), np.zeros(runs)
    for _ in range(CUSTOMERS):
        total += wait
        wait = np.maximum(0.0, wait + rng.exponential(1.0, runs) - rng.exponential(1 / LOAD, runs))
    return (total / CUSTOMERS).reshape(macro, REPLICATIONS)


def engine(macro):
    """The same queue simulated: one slot, one output token, geometric prompts with mean 1,000."""
    made = {
        "replications": macro * REPLICATIONS,
        "step_time": linear(1e-9, 0, 1e-3),
        "kv_cache": POOL,
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": LOAD},
            "prompt_tokens": geometric(1000),
            "output_tokens": constant(1),
            "num_requests": CUSTOMERS,
        },
        "policies": {"p": whole(1)},
    }
    rows = sq.run(made, check=False).replication_rows
    return np.array([row["mean_queue_ms"] / 1000 for row in rows]).reshape(macro, REPLICATIONS)


def measure(small):
    """Print how often intervals over replications contain the mean wait of M/M/1, by both ways."""
    for name, make, macro in (("Lindley", lindley, 400), ("engine", engine, 1 if small else 40)):
        found = [mean_interval(row.tolist()) for row in make(macro)]
        covered = np.mean([abs(one.value - 4.0) <= one.half_width for one in found])
        widths = np.mean([one.half_width / one.value for one in found])
        print(f"{name}: {macro} times {REPLICATIONS} replications of {CUSTOMERS} customers")
        print(f"  95 % intervals cover {covered:.1%}, mean half-width {widths:.1%} of the mean")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="few runs, which only show that it works")
    measure(parser.parse_args().small)
