"""Wait for a server that prefills one prompt at a time: equal prompts, or one in ten 20 times longer."""

import numpy as np
from drawing import COLORS, constant, figure, linear, main, means, point, scenario, whole

from simqueue.theory.single_server import mg1

PROMPTS = {
    "equal prompts (M/D/1)": (constant(580), 580.0, 580.0**2),
    "one in ten is 20 times longer (M/G/1)": (
        {"distribution": "empirical", "values": [200, 4000], "weights": [0.9, 0.1]},
        580.0,
        0.9 * 200**2 + 0.1 * 4000**2,
    ),
}
A, C = 0.01, 5e-5


def measure(small):
    made, ax = figure()
    for (name, (prompts, mean, square)), color in zip(PROMPTS.items(), COLORS, strict=False):
        service = A + C * mean
        second = A**2 + 2 * A * C * mean + C**2 * square
        loads = np.linspace(0.02, 0.93, 100)
        ax.plot(
            loads, [1000 * mg1(load / service, service, second).mean_wait_s for load in loads], color=color, label=name
        )
        for load in (0.6,) if small else (0.2, 0.4, 0.6, 0.8, 0.9):
            run = scenario(load / service, prompts, constant(1), 6_000, {"p": whole(1)}, linear(A, 0, C))
            run["replications"] = (
                20 if load >= 0.8 else 10
            )  # means are skewed at high load: t-intervals need more of them
            found = means(run, "mean_queue_ms", small)["p"]
            theory = 1000 * mg1(load / service, service, second).mean_wait_s
            print(
                f"{name:40s} load {load}: theory {theory:8.2f} ms, simulated {found.value:8.2f} ±{found.half_width:.2f}"
            )
            point(ax, load, found, color)
    ax.set(
        xlabel="load",
        ylabel="mean wait (ms)",
        yscale="log",
        title="Pollaczek-Khinchine: lines theory, points simulated",
    )
    ax.legend()
    return made


if __name__ == "__main__":
    main("pollaczek_khinchine", measure)
