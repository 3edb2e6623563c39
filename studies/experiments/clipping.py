"""Clipping the longest outputs (Yang, Xu, Jiao): the wait for a server of one request at a time over max_tokens."""

from pathlib import Path

import numpy as np
from drawing import COLORS, POOL, constant, figure, linear, point, whole
from numpy.random import default_rng
from trials import Trial, main, runs, shown

from simqueue.scenario import from_mapping
from simqueue.statistics.intervals import mean_interval
from simqueue.theory.single_server import mg1
from simqueue.workload.build import build_lengths

LIMITS = (200, 300, 400, 600, 1000, 2000, 4000)
RATE, PROMPT = 0.3, 500
STEP = linear(0.02, 5e-4, 2e-5)
PREFILL_S, DECODE_S = 0.02 + 2e-5 * PROMPT, 0.02 + 5e-4
WARM_UP = 0.1


def scenario(limit):
    return {
        "step_time": STEP,
        "kv_cache": POOL,
        "prompt_tokens": constant(PROMPT),
        "output_tokens": {"distribution": "lognormal", "mean": 100, "cv": 2.0, "max": limit},
    }


def law(limit):
    """Return the outputs of a limit, as a distribution."""
    workload = scenario(limit)
    arrivals = {"process": "poisson", "rate_rps": RATE}
    lengths = {key: workload.pop(key) for key in ("prompt_tokens", "output_tokens")}
    made = from_mapping(
        {**workload, "workload": {"arrivals": arrivals, "num_requests": 1, **lengths}, "policies": {"p": whole(1)}}
    )
    return build_lengths(made.workload.output_tokens, Path())


def theory_s(output):
    """Mean wait by Pollaczek and Khinchine."""
    mean = PREFILL_S + (output.mean() - 1) * DECODE_S
    return mg1(RATE, mean, mean**2 + DECODE_S**2 * output.variance()).mean_wait_s


def simulated_s(limit, requests, replications):
    """Mean wait of each replication."""
    arrivals = {"process": "poisson", "rate_rps": RATE}
    found = runs({"p": whole(1)}, arrivals, requests, replications=replications, **scenario(limit))
    first = int(WARM_UP * requests)
    return np.array([float(one["queue_ms"][first:].mean()) / 1000 for _, one in found])


def draw(axes, limits, clipped, theory, waits, shares):
    """Draw the wait over the limit, and its share of the longest limit's over the share of clipped requests."""
    for place, limit in enumerate(limits):
        point(axes[0], limit, waits[place], COLORS[1], "simulated" if place == 0 else None)
        point(axes[1], clipped[place], shares[place], COLORS[1])
    axes[0].plot(limits, theory, color=COLORS[0], label="Pollaczek-Khinchine")
    axes[0].set(
        xscale="log",
        xlabel="max_tokens",
        ylabel="mean wait (s)",
        title="Wait for one slot, outputs with mean 100 and cv 2",
    )
    axes[0].set_xticks(limits, [str(limit) for limit in limits])
    axes[0].minorticks_off()
    axes[0].legend()
    axes[1].plot(clipped, [wait / theory[-1] for wait in theory], color=COLORS[0])
    axes[1].set(
        xlabel="requests clipped (%)",
        ylabel=f"wait / wait with at most {limits[-1]}",
        title="Wait over the share of clipped requests",
    )


def measure(small):
    """Test what clipping does to the wait."""
    requests, replications = (60, 2) if small else (6000, 10)
    limits = LIMITS[1::3] if small else LIMITS
    outputs = [law(limit) for limit in limits]
    theory = [theory_s(output) for output in outputs]
    clipped = [
        100 * float((output.sample(default_rng(0), 200_000) == limit).mean())
        for output, limit in zip(outputs, limits, strict=True)
    ]
    each = [simulated_s(limit, requests, replications) for limit in limits]
    waits = [mean_interval(one.tolist()) for one in each]
    shares = [mean_interval((one / each[-1]).tolist()) for one in each]
    made, axes = figure(panels=2, width=11)
    draw(axes, limits, clipped, theory, waits, shares)
    inside = sum(abs(one.value - expected) <= one.half_width for one, expected in zip(waits, theory, strict=True))
    few = len(limits) // 2
    rows = [
        (f"{limit}", f"{share:.2f}", f"{wait:.3f}", shown(found), f"{wait / theory[-1]:.3f}", shown(of_longest))
        for limit, share, wait, found, of_longest in zip(limits, clipped, theory, waits, shares, strict=True)
    ]
    return Trial(
        title="Clipping the longest outputs",
        claim="Yang, Xu and Jiao (arXiv 2407.05347): a server of one request at a time is an M/G/1 queue, so a limit "
        "on the output of a very small fraction of the requests reduces the mean wait significantly: most of the "
        "second moment is in the tail.",
        source="Abstract and model; the choice of the best limit was not read and is not tested.",
        setting=f"One slot, prompts of {PROMPT} tokens, lognormal outputs with mean 100 and cv 2, {RATE} requests/s. "
        f"{requests:,} requests, the first tenth is warm-up, {replications} replications.",
        columns=(
            "max_tokens",
            "clipped (%)",
            "wait, theory (s)",
            "wait, simulated (s)",
            "share of the longest, theory",
            "simulated",
        ),
        rows=rows,
        verdict="confirmed" if shares[few].value < 0.6 and inside >= len(limits) - 1 else "confirmed with limits",
        because=f"Clipping {clipped[few]:.1f} % of the requests at {limits[few]} tokens leaves {shown(shares[few])} "
        f"of the wait (theory {theory[few] / theory[-1]:.3f}). {inside} of {len(limits)} intervals contain Pollaczek "
        "and Khinchine's value.",
        figure=made,
    )


if __name__ == "__main__":
    main("clipping", measure)
