"""Heavy-tailed outputs: served one at a time the latency has a tail one power heavier, in a continuous batch not."""

import numpy as np
from drawing import COLORS, constant, figure, linear, main, scenario, whole

import simqueue as sq

ALPHA = 2.2
outputs = {"distribution": "pareto", "alpha": ALPHA, "scale": 20, "max": 1_000_000}
LOAD = 0.5
mean = 20 * ALPHA / (ALPHA - 1)
policies = {
    "one at a time, FCFS": (whole(1), linear(0.01), LOAD / (0.01 * mean)),
    "continuous": (whole(2000), linear(1e-5, 0.01), LOAD / (0.01 * mean)),
}


def measure(small):
    made, ax = figure()
    for (name, (policy, step, rate)), color in zip(policies.items(), COLORS, strict=False):
        run = scenario(
            rate, constant(1), outputs, 500 if small else 20_000, {"p": policy}, step, replications=2 if small else 5
        )
        result = sq.run(run)
        e2el_s = np.sort(
            np.concatenate([r.recording.requests["finish_s"] - r.recording.requests["arrival_s"] for r in result.runs])
        )
        above = 1 - np.arange(1, len(e2el_s) + 1) / (len(e2el_s) + 1)
        low, high = np.searchsorted(-above, [-1e-2, -2e-4])
        slope = np.polyfit(np.log(e2el_s[low:high]), np.log(above[low:high]), 1)[0]
        expected = 1 - ALPHA if policy["max_num_seqs"] == 1 else -ALPHA
        print(f"{name}: slope of the tail {slope:.2f} (theory {expected:.2f})")
        ax.plot(e2el_s[::50], above[::50], color=color, label=f"{name}: slope {slope:.2f}")
    grid = np.array([20.0, 200.0])
    for power, style in ((ALPHA - 1, ":"), (ALPHA, "--")):
        ax.plot(grid, 1e-2 * (grid / grid[0]) ** -power, color="0.5", linestyle=style, label=f"power {power:.1f}")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="E2EL (s)",
        ylabel="share of requests above",
        title=f"Pareto outputs of power {ALPHA}, load {LOAD}",
    )
    ax.legend()
    return made


if __name__ == "__main__":
    main("heavy_tails", measure)
