"""Without limits, latency of continuous batching depends only on the mean output: four distributions of mean 200."""

from drawing import COLORS, constant, figure, geometric, linear, main, point, scenario, shortened, whole

import simqueue as sq
from simqueue.statistics.intervals import mean_interval
from simqueue.theory.sharing import shared_decoding

OUTPUTS = {
    "constant": constant(200),
    "uniform": {"distribution": "uniform", "low": 1, "high": 399},
    "geometric": geometric(200),
    "lognormal, cv 1": {"distribution": "lognormal", "mean": 200.5, "cv": 1.0},
}
METRICS = {"mean_itl_ms": "itl_s", "mean_e2el_ms": "e2el_s"}
RATES = (1.0, 2.0, 3.0)


def measure(small):
    made, axes = figure(panels=2, width=11)
    grid = [0.1 + 0.05 * i for i in range(66)]
    for ax, (metric, name) in zip(axes, METRICS.items(), strict=True):
        line = [1000 * getattr(shared_decoding(rate, 200, 0.02, 0.001), name) for rate in grid]
        ax.plot(grid, line, color="0.3", label="theory, any distribution")
        ax.set(
            xlabel="arrival rate (requests/s)",
            ylabel="ms",
            title=metric.removeprefix("mean_").removesuffix("_ms").upper(),
        )
    for i, (name_of_outputs, outputs) in enumerate(OUTPUTS.items()):
        for rate in RATES[:1] if small else RATES:
            run = scenario(rate, constant(1), outputs, 1000, {"p": whole(2000)}, linear(0.02, 0.001))
            result = sq.run(shortened(run) if small else run)
            for ax, (metric, name) in zip(axes, METRICS.items(), strict=True):
                found = mean_interval([row[metric] for row in result.replication_rows])
                expected = 1000 * getattr(shared_decoding(rate, 200, 0.02, 0.001), name)
                print(
                    f"{name_of_outputs:16s} rate {rate} {metric}: theory {expected:.2f}, "
                    f"simulated {found.value:.2f} ±{found.half_width:.2f}"
                )
                point(ax, rate + 0.04 * (i - 1.5), found, COLORS[i], name_of_outputs if rate == RATES[0] else None)
    axes[0].legend()
    return made


if __name__ == "__main__":
    main("insensitivity", measure)
