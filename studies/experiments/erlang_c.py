"""Erlang C and eight slots: slots are not servers, because requests start only when a step ends."""

import numpy as np
from drawing import COLORS, constant, figure, geometric, main, means, point, scenario, whole

from simqueue.theory.bulk import slotted_continuous
from simqueue.theory.many_servers import mmc

SLOTS, OUTPUT, STEP_S = 8, 10, 0.1


def measure(small):
    made, ax = figure()
    loads = np.linspace(0.1, 0.93, 3 if small else 60)
    rates = loads * SLOTS / (OUTPUT * STEP_S)
    ax.plot(
        loads,
        [1000 * mmc(SLOTS, r, 1 / (OUTPUT * STEP_S)).mean_wait_s for r in rates],
        color=COLORS[0],
        linestyle="--",
        label="Erlang C",
    )
    ax.plot(
        loads,
        [1000 * slotted_continuous(r, SLOTS, OUTPUT, STEP_S).mean_wait_s for r in rates],
        color=COLORS[1],
        label="slots in steps (exact)",
    )
    for load in (0.9,) if small else (0.2, 0.4, 0.6, 0.75, 0.9):
        rate = load * SLOTS / (OUTPUT * STEP_S)
        step = {"kind": "constant", "seconds": STEP_S}
        run = scenario(rate, constant(1), geometric(OUTPUT), 8000, {"p": whole(SLOTS)}, step)
        found = means(run, "mean_queue_ms", small)["p"]
        erlang, exact = (
            mmc(SLOTS, rate, 1 / (OUTPUT * STEP_S)).mean_wait_s,
            slotted_continuous(rate, SLOTS, OUTPUT, STEP_S).mean_wait_s,
        )
        print(
            f"load {load}: Erlang C {1000 * erlang:.2f} ms, exact {1000 * exact:.2f}, "
            f"simulated {found.value:.2f} ±{found.half_width:.2f}"
        )
        point(ax, load, found, "0.2")
    ax.set(
        xlabel="load",
        ylabel="mean wait (ms)",
        yscale="log",
        ylim=(1e-2, None),
        title="Wait for eight slots, steps of 100 ms: points simulated",
    )
    ax.legend()
    return made


if __name__ == "__main__":
    main("erlang_c", measure)
