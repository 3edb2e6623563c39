"""Stability by token throughput (Li, Dai, Peng): which policies carry b / t_b tokens a second, and when slots bind."""

import numpy as np
from drawing import COLORS, POOL, figure, geometric, linear, point
from trials import Trial, by_policy, growth, intervals, main, runs, shown, simulated

BUDGET, OVERHEAD_S, TOKEN_S, OUTPUT = 512, 0.01, 4e-5, 100
BOUND = BUDGET / (OVERHEAD_S + TOKEN_S * BUDGET)  # tokens/s
COST = linear(OVERHEAD_S, TOKEN_S, TOKEN_S)
SHORT, LONG = (10, 90), (50, 450)
NEARLY_ALL = 0.98
"""Share of b / t_b from which a policy counts as optimal."""
SHARES = (0.95, 1.05)
SLOTS = (32, 64, 128, 192, 512)


def limited(scheduler, slots=BUDGET, budget=BUDGET, **more):
    return {"scheduler": scheduler, "max_num_seqs": slots, "max_num_batched_tokens": budget, **more}


POLICIES = {
    "split": limited("chunked"),
    "whole": limited("continuous"),
    "first": limited("continuous", prefill="separate"),
    "static": {"scheduler": "static", "max_num_seqs": BUDGET},
}
NAMES = list(POLICIES)
LABELS = (
    "mixed, prompts split (Sarathi-Serve)",
    "mixed, whole prompts (Orca)",
    "prompts first (vLLM without mixing)",
    "static batches (FasterTransformer)",
)
OPTIMAL = dict(zip(NAMES, (True, True, False, False), strict=True))


def processed(steps):
    """Tokens per second that are computed while requests wait, without the first fifth of this time.

    If none waits for long, of the whole run.
    """
    end_s = steps["start_s"][steps["waiting"] > 0].max()
    inside = steps[steps["start_s"].between(end_s / 5, end_s)] if end_s > 0 else steps
    tokens = ((inside["decode_seqs"] + inside["prefill_tokens"]) * inside["repeat"]).to_numpy()[:-1]
    return float(tokens.sum() / (inside["start_s"].iloc[-1] - inside["start_s"].iloc[0]))


def settings(prompts, replications):
    low, high = prompts
    return {
        "replications": replications,
        "step_time": COST,
        "kv_cache": POOL,
        "prompt_tokens": {"distribution": "uniform", "low": low, "high": high},
        "output_tokens": geometric(OUTPUT),
    }


def carried(policies, prompts, requests, replications):
    result = simulated(policies, {"process": "all_at_once"}, requests, **settings(prompts, replications))
    groups = result.steps.groupby(["policy", "replication"], sort=False)
    return intervals([(str(policy), processed(steps) / BOUND) for (policy, _), steps in groups])


def in_system(requests, times):
    return np.searchsorted(requests["arrival_s"], times, "right") - np.searchsorted(
        np.sort(requests["finish_s"]), times, "right"
    )


def slots_alone(slots):
    """Capacity over the bound if slots are the only limit: rate conservation, a step of overhead per slot."""
    mean = sum(LONG) / 2
    work = TOKEN_S * (mean + OUTPUT - 1)
    return (mean + OUTPUT - 1) * slots / (OVERHEAD_S * OUTPUT + slots * work) / BOUND


def with_backlog(ax, requests, replications):
    """Draw the token throughput with long and with short prompts; return it by prompts and policy."""
    full = {prompts: carried(POLICIES, prompts, requests, replications) for prompts in (LONG, SHORT)}
    places = np.arange(len(NAMES))
    for offset, prompts, color in ((-0.12, LONG, COLORS[0]), (0.12, SHORT, COLORS[1])):
        for place, name in zip(places, NAMES, strict=True):
            label = f"prompts of {prompts[0]} to {prompts[1]} tokens" if place == 0 else None
            point(ax, place + offset, full[prompts][name], color, label)
    ax.axhline(1, color="0.4", linestyle="--", label="$b / t_b$")
    ax.set(ylim=(0, 1.08), ylabel="token throughput / ($b/t_b$)", title="Backlog")
    ax.set_xticks(places, ["mixed,\nsplit", "mixed,\nwhole", "prompts\nfirst", "static"])
    ax.legend(loc="lower left")
    return full


def with_arrivals(ax, requests, replications):
    """Draw the requests in the system below the condition; return the share that stays, by load and policy."""
    stays = {}
    for share in SHARES:
        arrivals = {"process": "poisson", "rate_rps": share * BOUND / (sum(LONG) / 2 + OUTPUT - 1)}
        found = runs(POLICIES, arrivals, requests, **settings(LONG, replications))
        stays[share] = intervals([(policy, growth(one)) for policy, one in found])
        if share == SHARES[0]:
            times = np.linspace(0, requests / arrivals["rate_rps"], 60)
            for group, label, color in zip(by_policy(found).values(), LABELS, COLORS, strict=True):
                lines = [in_system(one, times) for one in group]
                ax.plot(times, np.mean(lines, axis=0), color=color, label=label)
    ax.set(
        xlabel="time (s)",
        ylabel="requests in the system",
        yscale="log",
        ylim=(50, 40_000),
        title=f"Arrivals at {SHARES[0]} of the condition",
    )
    ax.legend(fontsize=8, loc="upper left")
    return stays


def with_slots(ax, slots, requests, replications):
    """Draw the token throughput of split prompts over the slots; return it."""
    capped = carried({f"{one}": limited("chunked", one) for one in slots}, LONG, requests, replications)
    for one in slots:
        point(ax, one, capped[f"{one}"], COLORS[0], "simulated" if one == slots[0] else None)
    line = np.linspace(16, 512, 200)
    ax.plot(line, np.minimum(1, slots_alone(line)), color=COLORS[1], label="least of slots and tokens")
    ax.axhline(1, color="0.4", linestyle="--", label="$b / t_b$")
    ax.set(
        xscale="log", xlabel="max_num_seqs", ylim=(0, 1.08), ylabel="token throughput / ($b/t_b$)", title="With slots"
    )
    ax.set_xticks(slots, [f"{one}" for one in slots])
    ax.minorticks_off()
    ax.legend(loc="lower right")
    return capped


def table(full, stays, capped):
    """Return the rows of the page."""
    rows = []
    for name, label in zip(NAMES, LABELS, strict=True):
        numbers = [shown(found[name]) for found in (full[LONG], full[SHORT], *stays.values())]
        agrees = (full[LONG][name].value > NEARLY_ALL) == OPTIMAL[name]
        rows.append((label, "yes" if OPTIMAL[name] else "no", *numbers, "yes" if agrees else "no"))
    return rows + [(f"split, {slots} slots", "no claim", shown(found), *[""] * 4) for slots, found in capped.items()]


def measure(small):
    """Test the stability condition of Li, Dai and Peng."""
    requests, replications = (40, 2) if small else (3000, 5)
    slots = SLOTS[:2] if small else SLOTS
    made, axes = figure(panels=3, width=15)
    full = with_backlog(axes[0], requests, replications)
    stays = with_arrivals(axes[1], 2 * requests, replications)
    capped = with_slots(axes[2], slots, requests, replications)
    split, orca, first, static = (full[LONG][name] for name in NAMES)
    as_claimed = first.value < NEARLY_ALL < split.value and static.value < NEARLY_ALL
    return Trial(
        title="Stability by token throughput",
        claim="Li, Dai and Peng (arXiv 2504.07347): mixed batches are stable if and only if the arriving tokens stay "
        "below the token rate of full batches, λ(m_p + m_d) < b / t_b. Orca and Sarathi-Serve reach it. Prompts in "
        "batches of their own and static batches do not. Limits on the batch size break the simple picture.",
        source="Abstract, and summaries with the condition; the theorem and its proof were not read.",
        setting=f"Steps of {1000 * OVERHEAD_S:g} ms + {1e6 * TOKEN_S:g} µs per token, b = {BUDGET} tokens, so b / t_b "
        f"= {BOUND:,.0f} tokens/s. Outputs geometric with mean {OUTPUT}, uniform prompts. A request counts with its "
        f"prompt and all output tokens but the last, which is never processed. {requests:,} requests with a backlog, "
        f"{2 * requests:,} with Poisson arrivals, {replications} replications. The share that stays is of the "
        "arrivals in the second half of the time: 0 if stable; at 1.05 of the condition, 0.048 for an optimal policy.",
        columns=(
            *("policy", "optimal by the claim", f"backlog, prompts {LONG[0]} to {LONG[1]}"),
            *(f"backlog, prompts {SHORT[0]} to {SHORT[1]}", "stays at 0.95", "stays at 1.05", "as claimed"),
        ),
        rows=table(full, stays, capped),
        verdict="confirmed with limits" if as_claimed else "not confirmed",
        because=f"Split prompts carry {shown(split)} of b / t_b, prompts first {shown(first)}, static batches "
        f"{shown(static)}. Whole prompts carry {shown(orca)} if prompts are nearly as long as the budget and "
        f"{shown(full[SHORT][NAMES[1]])} if they are short: what a prompt does not fit into stays empty, so Orca "
        f"needs prompts that are short compared with b. With {slots[0]} slots, split prompts carry "
        f"{shown(capped[f'{slots[0]}'])}: the condition holds only if slots do not bind before tokens.",
        figure=made,
    )


if __name__ == "__main__":
    main("token_throughput", measure)
