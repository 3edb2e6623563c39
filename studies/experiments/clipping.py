"""Effect of max_tokens, which clips the longest outputs, on a server that serves one request at a time."""

from pathlib import Path

from drawing import COLORS, constant, figure, linear, means, point, scenario, whole, write
from numpy.random import default_rng

from simqueue.scenario import from_mapping
from simqueue.theory.single_server import mg1
from simqueue.workload.build import build_lengths

LIMITS = [200, 300, 400, 600, 1000, 2000, 4000]
RATE = 0.3
made, axes = figure(panels=2, width=11)
line, clipped = [], []
for limit in LIMITS:
    outputs = {"distribution": "lognormal", "mean": 100, "cv": 2.0, "max": limit}
    run = scenario(RATE, constant(500), outputs, 8000, {"p": whole(1)}, linear(0.02, 5e-4, 2e-5))
    output = build_lengths(from_mapping(run).workload.output_tokens, Path())
    mean = 0.03 + (output.mean() - 1) * 0.0205
    line.append(mg1(RATE, mean, mean**2 + 0.0205**2 * output.variance()).mean_wait_s)
    clipped.append(100 * float((output.sample(default_rng(0), 200_000) == limit).mean()))
    found = means(run, "mean_queue_ms")["p"]
    print(f"max {limit:5d}: {clipped[-1]:5.2f} % clipped, wait {line[-1]:.3f} s, simulated {found.mean / 1000:.3f}")
    point(axes[0], limit, found, COLORS[1])
axes[0].plot(LIMITS, [1000 * wait for wait in line], color=COLORS[0], label="Pollaczek-Khinchine")
axes[0].set(
    xscale="log",
    xlabel="max_tokens",
    ylabel="mean wait (ms)",
    title="Wait for one slot, outputs with mean 100 and cv 2",
)
axes[0].set_xticks(LIMITS, [str(limit) for limit in LIMITS])
axes[0].minorticks_off()
axes[0].legend()
axes[1].plot(clipped, [wait / line[-1] for wait in line], color=COLORS[0], marker="o")
axes[1].set(
    xlabel="requests clipped (%)",
    ylabel="wait / wait without clipping",
    title="Wait over the share of clipped requests",
)
write(made, "clipping")
