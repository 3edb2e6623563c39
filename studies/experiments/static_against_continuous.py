"""Throughput of continuous over static batching: a wave runs until its longest output, a slot until its own."""

from drawing import COLORS, POOL, constant, figure, geometric, linear, main, point, whole

from simqueue.experiment.rates import saturation_throughput
from simqueue.scenario import from_mapping
from simqueue.statistics.intervals import Interval
from simqueue.theory.bulk import continuous_over_static

MEAN = 100


def measure(small):
    made, ax = figure()
    sizes = [1, 2, 4, 8, 16, 32, 64]
    ax.plot(
        sizes, [continuous_over_static(MEAN, b) for b in sizes], color=COLORS[0], label="E[longest of B] / E[output]"
    )
    for b in sizes[:2] if small else sizes:
        loaded = from_mapping(
            {
                "seed": 1,
                "step_time": linear(0.02),
                "kv_cache": POOL,
                "workload": {
                    "arrivals": {"process": "poisson", "rate_rps": 1.0},
                    "prompt_tokens": constant(1),
                    "output_tokens": geometric(MEAN),
                    "num_requests": 100,
                },
                "policies": {"static": {"scheduler": "static", "max_num_seqs": b}, "continuous": whole(b)},
            }
        ).resolve()
        rates = {
            name: saturation_throughput(loaded, name, requests=60 if small else 100 * b + 1000, replications=10)
            for name in loaded.policy_names
        }
        ratio = rates["continuous"].value / rates["static"].value
        width = ratio * sum((r.half_width / r.value) ** 2 for r in rates.values()) ** 0.5
        print(f"B = {b:2d}: theory {continuous_over_static(MEAN, b):.3f}, simulated {ratio:.3f} ±{width:.3f}")
        point(ax, b, Interval(ratio, ratio - width, ratio + width), COLORS[1])
    ax.set(
        xscale="log",
        xlabel="batch size",
        ylabel="throughput ratio",
        title="Continuous over static batching, geometric outputs",
    )
    ax.set_xticks(sizes, [str(b) for b in sizes])
    ax.legend()
    return made


if __name__ == "__main__":
    main("static_against_continuous", measure)
