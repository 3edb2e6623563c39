"""WAIT (Ao, Luo, Simchi-Levi, Wang): admission in lots against greedy admission, near the capacity of a KV pool."""

import numpy as np
from drawing import COLORS, constant, figure, linear, point
from trials import Trial, backlog, growth, intervals, main, middle_rate, ratios, runs, shown

PROMPT, OUTPUT = 50, 50
OVERHEAD_S, TOKEN_S = 0.01, 2e-5
HELD = PROMPT * OUTPUT + OUTPUT * (OUTPUT - 1) / 2
"""Token-steps of a request."""
SPARE = 1.3
"""Requests per step that the pool holds, over the smallest threshold: it is no whole number, as in practice."""
SCALES = (1, 2, 4, 8, 16)
TESTED = 8
LOADS = (0.7, 0.9, 0.98, 1.05)
KEPT = (0.1, 0.95)
"""Shares of the requests between which latencies are measured: without filling and emptying."""
MANY = {"max_num_seqs": 8192, "max_num_batched_tokens": 1_000_000}
LABELS = {
    "wait": "WAIT",
    "keeps": "greedy, evicts, keeps tokens (vLLM)",
    "again": "greedy, evicts, starts again",
    "reserved": "reserves prompt + output",
}


def pool(scale):
    return int(scale * SPARE * HELD)


def fluid_rps(scale):
    """Rate of the fluid model: the pool holds M / g new requests in each step, whose duration follows from them."""
    per_step = pool(scale) / HELD
    return per_step / (OVERHEAD_S + TOKEN_S * per_step * (PROMPT + OUTPUT - 1))


def policies(scale):
    threshold = int(pool(scale) / HELD)
    return {
        "wait": {"scheduler": "wait", "threshold": threshold, **MANY},
        "keeps": {"scheduler": "chunked", **MANY},
        "again": {"scheduler": "restart", **MANY},
        "reserved": {"scheduler": "continuous", "kv_cache": {"layout": "contiguous"}, **MANY},
    }


def settings(scale, replications):
    return {
        "replications": replications,
        "step_time": linear(OVERHEAD_S, TOKEN_S, TOKEN_S),
        "kv_cache": {"layout": "paged", "block_size": 1, "blocks": pool(scale)},
        "prompt_tokens": constant(PROMPT),
        "output_tokens": constant(OUTPUT),
    }


def with_backlog(ax, scales, per_scale):
    """Draw the throughput over the scale; return its rows, and the throughput by policy and scale."""
    rows, carried = [], {}
    for scale in scales:
        many = per_scale * scale
        for name, one in backlog(policies(scale), many, **settings(scale, 1)):
            carried[name, scale] = rate = middle_rate(one, np.ones(many), (0.3, 0.7)) / fluid_rps(scale)
            case = f"backlog, pool {pool(scale):,} tokens"
            rows.append((case, LABELS[name], f"{rate:.3f}", f"{one['preemptions'].mean():.2f}", ""))
    for name, color in zip(LABELS, COLORS, strict=True):
        ax.plot(scales, [carried[name, scale] for scale in scales], color=color, marker="o", label=LABELS[name])
    ax.axhline(1, color="0.4", linestyle="--", label="fluid model")
    ax.set(
        xscale="log",
        xlabel="scale of pool and threshold",
        ylim=(0, 1.1),
        ylabel="throughput / fluid model",
        title="Backlog",
    )
    ax.set_xticks(scales, [str(scale) for scale in scales])
    ax.minorticks_off()
    ax.legend(loc="lower right")
    return rows, carried


def with_arrivals(ax, scale, loads, requests, replications):
    """Draw the E2EL over the load; return its rows, and per load that of WAIT over that of each other policy."""
    rows, against = [], {}
    kept = slice(*(int(share * requests) for share in KEPT))
    for load in loads:
        arrivals = {"process": "poisson", "rate_rps": load * fluid_rps(scale)}
        found = runs(policies(scale), arrivals, requests, **settings(scale, replications))
        ttft_s = intervals([(name, float(one["ttft_ms"][kept].mean()) / 1000) for name, one in found])
        each_s = [(name, float((one["finish_s"] - one["arrival_s"])[kept].mean())) for name, one in found]
        stays = intervals([(name, growth(one)) for name, one in found])
        evictions = intervals([(name, float(one["preemptions"].mean())) for name, one in found])
        against[load], e2el_s = ratios(each_s, "wait"), intervals(each_s)
        for name, color, shift in zip(LABELS, COLORS, (-0.006, -0.002, 0.002, 0.006), strict=True):
            point(ax, load + shift, e2el_s[name], color, LABELS[name] if load == loads[0] else None)
            numbers = f"stays {shown(stays[name])}", shown(evictions[name], 2)
            latency = f"TTFT {shown(ttft_s[name])}, E2EL {shown(e2el_s[name])}"
            rows.append((f"Poisson, load {load}", LABELS[name], *numbers, latency))
    ax.set(
        xlabel="arrival rate / fluid model",
        ylabel="mean E2EL (s)",
        yscale="log",
        title=f"Poisson arrivals, pool of {pool(scale):,} tokens",
    )
    ax.legend(loc="upper left")
    return rows, against


def measure(small):
    """Test WAIT of Ao, Luo, Simchi-Levi and Wang."""
    requests, replications, per_scale = (200, 2, 200) if small else (8000, 4, 600)
    scales, loads = (SCALES[:1], LOADS[1:2]) if small else (SCALES, LOADS)
    made, axes = figure(panels=2, width=13)
    rows, carried = with_backlog(axes[0], scales, per_scale)
    scale = scales[-1] if small else TESTED
    poisson_rows, against = with_arrivals(axes[1], scale, loads, requests, replications)
    largest, shares = scales[-1], {load: against[load] for load in loads[-2:]}
    near = 0.93 < carried["wait", largest] <= 1
    every = all(one.high < 1 for found in shares.values() for one in found.values())
    return Trial(
        title="WAIT thresholds",
        claim="Ao, Luo, Simchi-Levi and Wang (arXiv 2504.11320): greedy admission to a pool of KV tokens overflows "
        "and evicts. WAIT admits prompts in lots of a threshold from the fluid model, which bounds the memory; it "
        "reaches the throughput of the fluid model as the system grows, is stable at more loads than usual policies, "
        "and has lower latency near overload.",
        source="Abstract and summaries of the algorithm; the theorems and the exact rule for types of requests were "
        "not read. Tested for one type with known lengths: at most n prompts a step, once n wait; then at most n "
        "requests are in each stage, and n g tokens are enough. Nested WAIT was not tested.",
        setting=f"Prompts and outputs of {PROMPT} tokens, so g = {HELD:,.0f} token-steps; steps of "
        f"{1000 * OVERHEAD_S:g} ms + {1e6 * TOKEN_S:g} µs per token; blocks of one token. The pool holds {SPARE} g "
        f"tokens times the scale, and n = M / g rounded down. {requests:,} requests and {replications} replications "
        "with Poisson arrivals; with a backlog nothing is random.",
        columns=("case", "policy", "throughput / fluid, or share that stays", "evictions per request", "latency (s)"),
        rows=[*rows, *poisson_rows],
        verdict="not confirmed" if not near else "confirmed" if every else "confirmed with limits",
        because=f"WAIT carries {carried['wait', scales[0]]:.3f} of the fluid model at scale {scales[0]} and "
        f"{carried['wait', largest]:.3f} at scale {largest}, and never evicts. Greedy admission carries "
        f"{carried['keeps', largest]:.3f} there if evicted requests keep their tokens and "
        f"{carried['again', largest]:.3f} if they start again, reservations {carried['reserved', largest]:.3f}. "
        + " ".join(
            f"At {load} of the fluid model the E2EL of WAIT is "
            + ", ".join(f"{shown(one)} times that of '{LABELS[name]}'" for name, one in shares[load].items())
            + "."
            for load in shares
        )
        + " Limits: outputs are equal and known here, the worst case for greedy admission (see the [limit "
        "cycles](eviction_cycles.md)). As long as the pool does not overflow, waiting for a lot only adds latency.",
        figure=made,
    )


if __name__ == "__main__":
    main("wait_thresholds", measure)
