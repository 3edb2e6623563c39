"""Fixed, dynamic and elastic batches (Yang, Xu, Jiao): delays, simulated and from the chain of a bulk queue."""

import numpy as np
from drawing import COLORS, POOL, constant, figure, linear, point, whole
from scipy.stats import poisson
from trials import Trial, intervals, main, ratios, runs, shown, stationary

OVERHEAD_S, DECODE_S, PREFILL_S, PROMPT = 0.02, 5e-4, 2e-5, 500
MEAN, CV, MOST, BATCH = 100, 1.0, 1000, 16
LOADS = (0.3, 0.5, 0.7, 0.85)
SIZES = (4, 6, 8, 12, 16)
SIZE_RATE_RPS = 0.7
DRAWS = 3000
"""Batches drawn for each size, to average over their lengths."""
OUTPUTS = {"distribution": "lognormal", "mean": MEAN, "cv": CV, "max": MOST}
WARM_UP = 0.1


def drawn(rng, size):
    """Outputs of batches of one size, a row each: lognormal, rounded, clipped."""
    variance = np.log(1 + CV**2)
    lengths = rng.lognormal(np.log(MEAN) - variance / 2, np.sqrt(variance), (DRAWS, size))
    return np.clip(np.rint(lengths), 1, MOST)


def durations(outputs, elastic):
    """Duration of each batch: its prompts, and decodes of the rows that run: all until the longest ends, or fewer."""
    size = outputs.shape[1]
    steps = outputs.max(axis=1) - 1
    rows = (outputs - 1).sum(axis=1) if elastic else size * steps
    return OVERHEAD_S + PREFILL_S * PROMPT * size + OVERHEAD_S * steps + DECODE_S * rows


def arrivals_in(times, rate, states):
    """Law of the number that arrive during a batch; its duration is averaged in 100 groups of equal weight."""
    means = np.sort(times).reshape(100, -1).mean(axis=1)
    return poisson.pmf(np.arange(states)[:, None], rate * means).mean(axis=1)


def bulk_wait_s(rate, most, *, least=1, elastic=False):
    """Mean wait before the batch: the chain of the number waiting when a batch starts, with Poisson arrivals.

    A batch takes all that wait, at most `most`; it starts when `least` wait.
    """
    rng = np.random.default_rng(0)
    kinds = {size: durations(drawn(rng, size), elastic) for size in range(least, most + 1)}
    load = rate * kinds[most].mean() / most
    states = int(most * (5 + 5 / (1 - load)))  # the number waiting falls off geometrically, faster at low load
    come = {size: arrivals_in(times, rate, states) for size, times in kinds.items()}
    chain, queued, length = np.zeros((states, states)), np.zeros(states), np.zeros(states)
    for n in range(least, states):
        size, left = min(n, most), max(n - most, 0)
        times = kinds[size]
        after = np.zeros(states)
        after[left:] = come[size][: states - left]
        after[-1] += 1 - after.sum()
        few = after[:least].copy()
        before = np.arange(least)
        chain[n] = after
        chain[n, :least] = 0
        chain[n, least] += few.sum()
        idle = ((least * (least - 1) - before * (before - 1)) / 2 * few).sum() / rate
        queued[n] = left * times.mean() + rate * (times**2).mean() / 2 + idle
        length[n] = times.mean() + ((least - before) * few).sum() / rate
    reached = slice(least, states)
    law = stationary(chain[reached, reached])
    return float(law @ queued[reached] / (rate * (law @ length[reached])))


def capacity(most):
    return most / durations(drawn(np.random.default_rng(1), most), False).mean()


def fixed(size):
    return {"scheduler": "static", "max_num_seqs": size, "batch": "fixed", "release": "own_end"}


POLICIES = {
    "fixed": fixed(BATCH),
    "dynamic": {"scheduler": "static", "max_num_seqs": BATCH, "release": "own_end"},
    "elastic": {**whole(BATCH), "scheduler": "waves"},
    "continuous": whole(BATCH),
}


def delays(policies, rate, requests, replications):
    """Return (policy, mean wait in s) and (policy, mean E2EL in s) of each replication."""
    found = runs(
        policies,
        {"process": "poisson", "rate_rps": rate},
        requests,
        replications=replications,
        step_time=linear(OVERHEAD_S, DECODE_S, PREFILL_S),
        kv_cache=POOL,
        prompt_tokens=constant(PROMPT),
        output_tokens=OUTPUTS,
    )
    kept = slice(int(WARM_UP * requests), int(0.95 * requests))
    waits = [(name, float(one["queue_ms"][kept].mean()) / 1000) for name, one in found]
    whole_s = [(name, float((one["finish_s"] - one["arrival_s"])[kept].mean())) for name, one in found]
    return waits, whole_s


THEORY = {
    "fixed": lambda rate: bulk_wait_s(rate, BATCH, least=BATCH),
    "dynamic": lambda rate: bulk_wait_s(rate, BATCH),
    "elastic": lambda rate: bulk_wait_s(rate, BATCH, elastic=True),
}


def contains(interval, value):
    return abs(interval.value - value) <= interval.half_width


def over_loads(ax, loads, most, requests, replications):
    """Draw the waits over the load; return rows, which intervals contain the bulk queue's wait, and ratios."""
    rows, agree, order, lines = [], [], {}, {name: [] for name in THEORY}
    for load in loads:
        waits, whole_s = delays(POLICIES, load * most, requests, replications)
        found, complete = intervals(waits), intervals(whole_s)
        for name, color in zip(POLICIES, COLORS, strict=True):
            point(ax, load, found[name], color, f"{name}, simulated" if load == loads[0] else None)
            expected = "-"
            if name in THEORY:
                lines[name].append(THEORY[name](load * most))
                agree.append(contains(found[name], lines[name][-1]))
                expected = f"{lines[name][-1]:.3f}"
            rows.append((f"{name}, load {load}", expected, shown(found[name]), shown(complete[name])))
        order[load] = ratios(waits, "elastic")["dynamic"], ratios(waits, "dynamic")["fixed"]
    for (name, line), color in zip(lines.items(), COLORS, strict=False):
        ax.plot(loads, line, color=color, label=f"{name}, bulk queue")
    ax.set(
        xlabel="load of dynamic batches",
        ylabel="mean wait for a batch (s)",
        yscale="log",
        title=f"At most {BATCH} in a batch",
    )
    ax.legend(fontsize=8)
    return rows, agree, order


def over_sizes(ax, sizes, requests, replications):
    """Draw the E2EL over the size of fixed batches; return rows, agreement, the best size, and dynamic over it."""
    policies = {f"fixed-{size}": fixed(size) for size in sizes} | {"dynamic": POLICIES["dynamic"]}
    waits, whole_s = delays(policies, SIZE_RATE_RPS, requests, replications)
    found, complete = intervals(waits), intervals(whole_s)
    rows, agree = [], []
    for size in sizes:
        name, expected = f"fixed-{size}", bulk_wait_s(SIZE_RATE_RPS, size, least=size)
        agree.append(contains(found[name], expected))
        point(ax, size, complete[name], COLORS[0], "fixed" if size == sizes[0] else None)
        case = f"fixed {size}, {SIZE_RATE_RPS} requests/s"
        rows.append((case, f"{expected:.3f}", shown(found[name]), shown(complete[name])))
    ax.axhline(complete["dynamic"].value, color=COLORS[1], label="dynamic")
    ax.set(
        xlabel="batch size",
        ylabel="mean E2EL (s)",
        ylim=(0, None),
        title=f"Fixed batches at {SIZE_RATE_RPS} requests/s",
    )
    ax.legend()
    best = min(sizes, key=lambda size: complete[f"fixed-{size}"].value)
    return rows, agree, best, ratios(whole_s, "dynamic")[f"fixed-{best}"]


def measure(small):
    """Test the order of the delays and the formulas of Yang, Xu and Jiao."""
    requests, replications = (60, 2) if small else (3000, 6)
    loads, sizes = (LOADS[:1], SIZES[:1]) if small else (LOADS, SIZES)
    most = capacity(BATCH)
    made, axes = figure(panels=2, width=13)
    rows, agree, order = over_loads(axes[0], loads, most, requests, replications)
    size_rows, sizes_agree, best, gain = over_sizes(axes[1], sizes, requests, replications)
    ordered = all(one.high < 1 and two.high < 1 for one, two in order.values())
    agree += sizes_agree
    return Trial(
        title="Fixed, dynamic and elastic batches",
        claim="Yang, Xu and Jiao (arXiv 2407.05347): batched inference is a bulk queue in which the batch time "
        "depends on the size and the longest output. Delays are longest with fixed batches, shorter if a batch takes "
        "all that wait (dynamic), and shortest if finished requests leave at once (elastic). A fixed size has an "
        "optimum.",
        source="Abstract and model; the formulas for the delays were not read. The bulk queue here is computed as a "
        "chain of our own, which averages over drawn batches.",
        setting=f"Steps of {1000 * OVERHEAD_S:g} ms + {1e6 * DECODE_S:g} µs per row + {1e6 * PREFILL_S:g} µs per "
        f"prompt token. Prompts of {PROMPT} tokens, lognormal outputs with mean {MEAN} and cv {CV:g}, at most {MOST}. "
        f"Batches of at most {BATCH}; the load is over the capacity of dynamic batches, {most:.3f} requests/s. In "
        f"elastic batches the rows of finished requests cost nothing. {requests:,} Poisson arrivals, of which the "
        f"first tenth is warm-up; {replications} replications.",
        columns=("batches", "wait, bulk queue (s)", "wait, simulated (s)", "E2EL, simulated (s)"),
        rows=[*rows, *size_rows],
        verdict="not confirmed" if not ordered else "confirmed" if np.mean(agree) >= 0.8 else "confirmed with limits",
        because=f"{sum(agree)} of {len(agree)} simulated intervals contain the wait of the bulk queue. Elastic over "
        "dynamic wait: "
        + ", ".join(f"{shown(one)} at load {load}" for load, (one, _) in order.items())
        + "; dynamic over fixed: "
        + ", ".join(f"{shown(two)} at load {load}" for load, (_, two) in order.items())
        + f". The best fixed size at {SIZE_RATE_RPS} requests/s is {best} of those tested; the E2EL of dynamic "
        f"batches is {shown(gain)} times that of it. Continuous batching, where requests join at every step, waits "
        "for one step.",
        figure=made,
    )


if __name__ == "__main__":
    main("elastic_batching", measure)
