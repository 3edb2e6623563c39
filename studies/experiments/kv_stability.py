"""Stability with a pool of KV tokens (Nie, Si, Zhou): between the bound and the bound less the largest request."""

import numpy as np
from drawing import COLORS, constant, figure, point, whole
from trials import Trial, backlog, growth, intervals, main, middle_rate, runs, shown

STEP_S, LOW, HIGH = 0.02, 20, 180
LARGEST = 2 * HIGH - 1
"""Tokens that the largest request holds in its last step."""
UNIFORM = {"distribution": "uniform", "low": LOW, "high": HIGH}
SIZES = (2, 4, 8, 16, 32)
SHARES = (0.95, 1.05)
EQUAL, EQUAL_SIZES = (LOW, HIGH), (8, 32)
"""Prompt and output of equal requests, and their pools in requests."""
TESTED = 16
"""Size of the pool with arrivals, in largest requests."""
POLICIES = {
    "look-ahead": {**whole(2048), "scheduler": "look-ahead"},
    "paged": whole(2048),
    "restart": {"scheduler": "restart", "max_num_seqs": 2048, "max_num_batched_tokens": 1_000_000},
    "reserved": {**whole(2048), "kv_cache": {"layout": "contiguous"}},
}
LABELS = (
    "looks ahead, never evicts",
    "evicts, keeps the tokens",
    "evicts, starts again",
    "reserves prompt + output",
)


def held(requests):
    """Token-steps of each request: its prompt in the first step, and one token more in each one."""
    prompt, output = requests["prompt_tokens"], requests["output_tokens"]
    return prompt * output + output * (output - 1) / 2


def mean_held():
    """E[g] of independent prompts and outputs, both uniform on LOW to HIGH."""
    values = np.arange(LOW, HIGH + 1)
    return values.mean() ** 2 + (values * (values - 1)).mean() / 2


def settings(size, replications, largest=LARGEST):
    return {
        "replications": replications,
        "step_time": {"kind": "constant", "seconds": STEP_S},
        "kv_cache": {"layout": "paged", "block_size": 1, "blocks": size * largest},
        "prompt_tokens": UNIFORM,
        "output_tokens": UNIFORM,
    }


def used(size, requests, replications):
    """Return policy -> useful token-steps per step over the pool: the capacity over M / (step E[g])."""
    found = backlog(POLICIES, requests, **settings(size, replications))
    return intervals([(name, middle_rate(one, held(one)) * STEP_S / (size * LARGEST)) for name, one in found])


def used_by_equal(size, requests):
    """The same for equal requests, for which nothing is random."""
    largest = sum(EQUAL) - 1
    lengths = dict(zip(("prompt_tokens", "output_tokens"), map(constant, EQUAL), strict=True))
    found = backlog(POLICIES, requests, **(settings(size, 1, largest) | lengths))
    return {name: middle_rate(one, held(one)) * STEP_S / (size * largest) for name, one in found}


def staying(size, share, requests, replications):
    arrivals = {"process": "poisson", "rate_rps": share * size * LARGEST / (STEP_S * mean_held())}
    found = runs(POLICIES, arrivals, requests, **settings(size, replications))
    return intervals([(name, growth(one)) for name, one in found])


def draw_capacity(ax, capacity):
    """Draw the capacity over the size of the pool, and the region between the two conditions."""
    sizes = list(capacity)
    line = np.geomspace(sizes[0], sizes[-1], 100)
    ax.fill_between(line, 1 - 1 / line, 1, color="0.9", label="between the two conditions")
    for name, label, color, shift in zip(POLICIES, LABELS, COLORS, (0.97, 1.0, 1.03, 1.0), strict=True):
        for size in sizes:
            point(ax, shift * size, capacity[size][name], color, label if size == sizes[0] else None)
    ax.set(xscale="log", xlabel="pool / largest request", ylabel=r"capacity / $\mu$", ylim=(0.4, 1.03), title="Backlog")
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
    ax.legend(loc="lower right")


def draw_stays(ax, size, stays):
    """Draw the share of the arrivals that stays, at each rate over μ."""
    places = np.arange(len(POLICIES))
    for (share, found), color, offset in zip(stays.items(), COLORS, (-0.1, 0.1), strict=False):
        for place, name in zip(places, POLICIES, strict=True):
            label = rf"arrivals at {share:.3f} $\mu$" if place == 0 else None
            point(ax, place + offset, found[name], color, label)
    ax.axhline(0, color="0.4", linestyle="--")
    ax.set(ylabel="share of the arrivals that stays", title=f"Poisson arrivals, pool of {size} largest requests")
    ax.set_xticks(places, ["looks\nahead", "evicts,\nkeeps", "evicts,\nstarts again", "reserves"])
    ax.legend(loc="upper left")


def table(capacity, stays, equal):
    """Return the rows of the page: what the claim asks for, and what each policy does."""
    least = [f"{1 - 1 / size:.3f}" for size in capacity], [f"{1 - 1 / size:.3f}" for size in equal]
    rows = [("least by the claim, 1 − δ", *least[0], "0", "more than 0", *least[1])]
    for name, label in zip(POLICIES, LABELS, strict=True):
        random = [shown(found[name]) for found in (*capacity.values(), *stays.values())]
        rows.append((label, *random, *(f"{found[name]:.3f}" for found in equal.values())))
    return rows


def measure(small):
    """Test the stability condition of Nie, Si and Zhou."""
    requests, replications = (30, 2) if small else (1500, 5)
    sizes, equal_sizes = (SIZES[1:2], EQUAL_SIZES[:1]) if small else (SIZES, EQUAL_SIZES)
    size = sizes[-1] if small else TESTED
    capacity = {one: used(one, requests, replications) for one in sizes}
    equal = {one: used_by_equal(one, requests) for one in equal_sizes}
    tested = ((1 - 1 / size) * SHARES[0], SHARES[1])
    stays = {share: staying(size, share, 2 * requests, replications) for share in tested}
    made, axes = figure(panels=2, width=13)
    draw_capacity(axes[0], capacity)
    draw_stays(axes[1], size, stays)
    most = max(found[name].value for found in capacity.values() for name in POLICIES)
    inside = {name: [one for one in sizes if capacity[one][name].high >= 1 - 1 / one] for name in POLICIES}
    grow = all(one.low > 0 for one in stays[tested[1]].values())
    last, alike = capacity[sizes[-1]], equal[equal_sizes[-1]]
    return Trial(
        title="Stability with a KV pool",
        claim="Nie, Si and Zhou (arXiv 2605.04595): with M tokens of KV, steps of b seconds and g the token-steps of a "
        "request, the queue grows if the arrival rate is above μ = M / (b E[g]). A work-conserving policy is stable "
        "below μ (1 − δ), where δ is a slack tied to the largest request.",
        source="Abstract, and a review that states both conditions; the exact δ, the batching rule and the proof were "
        "not read. Tested with δ = largest request / M.",
        setting=f"Steps of {1000 * STEP_S:g} ms, prompts and outputs uniform on {LOW} to {HIGH} tokens, blocks of one "
        f"token, the largest request holds {LARGEST} tokens, E[g] = {mean_held():,.0f} token-steps. {requests:,} "
        f"requests with a backlog, {2 * requests:,} with Poisson arrivals, {replications} replications. The capacity "
        "is counted in token-steps of finished requests, so that chance in the lengths does not matter.",
        columns=(
            *("policy", *(f"capacity / μ, M = {one} largest" for one in sizes)),
            *(f"stays at {share:.3f} μ, M = {size} largest" for share in tested),
            *(f"equal requests: capacity / μ, M = {one} largest" for one in equal_sizes),
        ),
        rows=table(capacity, stays, equal),
        verdict="confirmed with limits"
        if most <= 1 and grow and inside["look-ahead"] == list(sizes)
        else "not confirmed",
        because=f"No policy carries more than {most:.3f} of μ, and "
        f"{'all queues grow' if grow else 'not all queues grow'} above it. At least 1 − δ is carried, of the sizes of "
        "the pool, by: "
        + ", ".join(
            f"'{label}' {len(inside[name])} of {len(sizes)}" for name, label in zip(POLICIES, LABELS, strict=True)
        )
        + f". With M = {sizes[-1]} largest requests they carry "
        + ", ".join(shown(last[name]) for name in POLICIES)
        + " of μ. Limits: reservations leave memory empty, so they are not work-conserving in this sense. And with "
        f"equal requests ({EQUAL[0]} + {EQUAL[1]} tokens) and a backlog, the four carry "
        + ", ".join(f"{alike[name]:.3f}" for name in POLICIES)
        + ": requests start and end together, and a queue that was once long does not empty at rates at which the "
        "condition promises stability, unless its batching rule, which was not read, prevents this (see the "
        "[limit cycles](eviction_cycles.md)).",
        figure=made,
    )


if __name__ == "__main__":
    main("kv_stability", measure)
