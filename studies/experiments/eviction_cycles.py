"""Memory limit cycles (Ao, Dong, Luo, Simchi-Levi): when a full pool settles, and when it evicts for ever."""

from math import gcd

import numpy as np
from drawing import COLORS, figure, point
from trials import Trial, intervals, main, middle_rate, shown

import simqueue as sq

STEP_S = 0.01
OUTPUT, PROMPTS, PER_STEP = 20, (1, 8, 80), 6
SLOW = 3
"""How many times as long the longest prompt runs: near the state without evictions, long prompts leave it slowly."""
LATE = (0.6, 0.95)
"""Shares of the requests between which is measured."""
PAIRS = ((8, 8), (4, 8), (6, 8), (5, 8), (7, 8), (3, 8))
PAIR_PROMPT, PAIR_PER_STEP = 100, 24
MANY = {"max_num_seqs": 4096, "max_num_batched_tokens": 1_000_000}
RULES = {
    "front": {"scheduler": "restart", **MANY},
    "back": {"scheduler": "restart", "back": True, **MANY},
    "oldest": {"scheduler": "restart", "back": True, "oldest": True, **MANY},
    "keeps": {"scheduler": "chunked", **MANY},
    "look-ahead": {"scheduler": "look-ahead", **MANY},
    "lots": {"scheduler": "wait", "threshold": PER_STEP, **MANY},
}
LABELS = {
    "front": "newest evicted, starts again, to the front",
    "back": "newest evicted, starts again, to the back",
    "oldest": "oldest evicted, starts again, to the back",
    "keeps": "newest evicted, keeps its tokens (vLLM)",
    "look-ahead": "looks ahead, never evicts",
    "lots": f"admits {PER_STEP} a step, never evicts (WAIT)",
}
SIX_COLORS = [*COLORS, "#d55e00", "#56b4e9"]


def held(prompt, output):
    """Token-steps of a request."""
    return prompt * output + output * (output - 1) / 2


def worst(prompt, output):
    """Throughput over that without evictions, if all requests in the pool start and end together."""
    return held(prompt, output) / (output * (prompt + output - 1))


def saturated(rules, prompt, outputs, per_step, steps, seed, *, mixed=False):
    """Run rules on a full pool: requests spread at random over the first stay, then all others wait.

    The pool holds exactly `per_step` new requests a step without evictions. The outputs alternate, or are drawn.
    """
    rng = np.random.default_rng(seed)
    requests, stay = per_step * steps, np.mean(outputs)
    drawn = rng.choice(outputs, requests) if mixed else np.resize(outputs, requests)
    first = round(per_step * stay)
    arrival_s = np.full(requests, stay * STEP_S)
    arrival_s[:first] = np.sort(rng.uniform(0, stay * STEP_S, first))
    listed = [
        {"arrival_s": float(when), "prompt_tokens": prompt, "output_tokens": int(output)}
        for when, output in zip(arrival_s, drawn, strict=True)
    ]
    pool = round(per_step * np.mean([held(prompt, one) for one in outputs]))
    made = {
        "step_time": {"kind": "constant", "seconds": STEP_S},
        "kv_cache": {"layout": "paged", "block_size": 1, "blocks": pool},
        "workload": {"requests": listed},
        "policies": {rule: RULES[rule] for rule in rules},
    }
    return sq.run(made, workers=1), pool


def measured(rules, prompt, outputs, per_step, steps, seeds, **more):
    """Return rule -> interval of the throughput over that without evictions, and of late evictions per request."""
    rates, evictions = [], []
    for seed in range(1, seeds + 1):
        result, pool = saturated(rules, prompt, outputs, per_step, steps, seed, **more)
        for rule, one in result.requests.groupby("policy", sort=False):
            columns = {name: one[name].to_numpy() for name in ("finish_s", "output_tokens", "preemptions")}
            rate = middle_rate(columns, held(prompt, columns["output_tokens"]), LATE) * STEP_S / pool
            rates.append((str(rule), rate))
            low, high = (int(share * len(one)) for share in LATE)
            evictions.append((str(rule), float(columns["preemptions"][low:high].mean())))
    return intervals(rates), intervals(evictions)


def running(outputs, steps):
    """Return the running requests in each of the last steps of a mix of outputs over their mean."""
    result, _ = saturated(["front"], PAIR_PROMPT, outputs, PAIR_PER_STEP, steps, 1)
    table = result.steps
    each = np.repeat(table["running"].to_numpy(), table["repeat"].to_numpy())[: steps - 20]
    return each / each[-100:].mean()


def equal_outputs(ax, prompts, steps, seeds):
    """Panel and rows of equal outputs: all rules, over the prompt. Also the throughputs."""
    rows, found = [], {}
    for prompt in prompts:
        many = SLOW * steps if prompt == PROMPTS[-1] else steps
        rates, evictions = measured(RULES, prompt, [OUTPUT], PER_STEP, many, seeds)
        for rule, color, shift in zip(RULES, SIX_COLORS, (0.86, 0.91, 0.97, 1.03, 1.09, 1.16), strict=True):
            found[rule, prompt] = rates[rule]
            point(ax, shift * prompt, rates[rule], color, LABELS[rule] if prompt == prompts[0] else None)
            both = shown(rates[rule]), shown(evictions[rule])
            rows.append((f"{prompt} + {OUTPUT}", LABELS[rule], f"{worst(prompt, OUTPUT):.3f}", *both))
    line = np.geomspace(0.8, 100, 100)
    ax.plot(line, worst(line, OUTPUT), color="0.3", label="theory: all start and end together")
    ax.set(
        xscale="log",
        xlabel="prompt (tokens)",
        ylabel="throughput / without evictions",
        ylim=(0.35, 1.65),
        title=f"Equal outputs of {OUTPUT} tokens",
    )
    ax.set_xticks(prompts, [str(prompt) for prompt in prompts])
    ax.minorticks_off()
    ax.legend(fontsize=8, loc="upper left")
    return rows, found


def mixed_outputs(ax, pairs, steps, seeds):
    """Panel and rows of two classes: evictions if outputs alternate, and if they are drawn at random."""
    rows, found = [], {}
    for place, pair in enumerate(pairs):
        for mixed in (False, True):
            if mixed and pair[0] == pair[1]:
                continue
            rates, evictions = measured(["front"], PAIR_PROMPT, pair, PAIR_PER_STEP, steps, seeds, mixed=mixed)
            found[pair, mixed] = evictions["front"]
            label = ("alternating", "drawn at random")[mixed] if pair == pairs[-1] else None
            point(ax, place + 0.2 * mixed - 0.1, evictions["front"], COLORS[mixed], label)
            name = f"{PAIR_PROMPT} + {pair[0]} or {pair[1]}, {'drawn' if mixed else 'alternating'}"
            both = shown(rates["front"]), shown(evictions["front"], 4)
            rows.append((name, LABELS["front"], f"divisor {gcd(*pair)}", *both))
    ax.set(ylabel="evictions per request", ylim=(-0.003, None), title=f"Two outputs, prompts of {PAIR_PROMPT} tokens")
    ax.set_xticks(range(len(pairs)), [f"{one}, {two}\ngcd {gcd(one, two)}" for one, two in pairs])
    ax.legend()
    return rows, found


def measure(small):
    """Test the limit cycles of Ao, Dong, Luo and Simchi-Levi."""
    steps, seeds = (25, 2) if small else (500, 3)
    prompts, pairs = (PROMPTS[1:2], PAIRS[2:4]) if small else (PROMPTS, PAIRS)
    made, axes = figure(panels=3, width=17)
    rows, rates = equal_outputs(axes[0], prompts, steps, seeds)
    pair_rows, evictions = mixed_outputs(axes[1], pairs, steps, seeds)
    for outputs, color in (((8, 8), COLORS[0]), ((5, 8), COLORS[2])):
        line = running(outputs, steps)
        label = f"{outputs[0]} and {outputs[1]}" if outputs[0] != outputs[1] else f"all {outputs[0]}"
        axes[2].plot(line, color=color, linewidth=1, label=f"outputs {label}")
    axes[2].set(
        xlabel="step", ylabel="running requests / their mean", ylim=(0.8, 1.2), title="From near the fixed point"
    )
    axes[2].legend()
    starts_again = [rates["front", prompt] for prompt in prompts]
    near = [abs(one.value / worst(prompt, OUTPUT) - 1) for one, prompt in zip(starts_again, prompts, strict=True)]
    coprime = [evictions[pair, False].value for pair in pairs if gcd(*pair) == 1]
    others = [evictions[pair, False].value for pair in pairs if gcd(*pair) > 1]
    drawn = [evictions[pair, True].value for pair in pairs if gcd(*pair) == 1]
    holds = max(coprime) < 1e-3 < min(others) and near[0] < 0.05
    first = prompts[0]
    return Trial(
        title="Memory limit cycles of evictions",
        claim="Ao, Dong, Luo and Simchi-Levi (arXiv 2606.15555): with equal outputs and a full pool, the state "
        "without evictions is unstable. From almost everywhere the system goes to a limit cycle with evictions, "
        "which costs up to half of the throughput. If prompts are long compared with outputs, outputs without a "
        "common divisor stabilise the state without evictions; with a common divisor they do not.",
        source="Abstract only: the model, the theorems and the rules for restarts were not read. The line for the "
        "worst cycle is ours: if all requests of the pool start and end together, M / (P + O − 1) of them finish "
        "every O steps.",
        setting=f"Constant steps, blocks of one token. Left: equal outputs of {OUTPUT}; the pool is {PER_STEP} times "
        f"the token-steps of a request, so {PER_STEP} requests a step are the most. Middle and right: two outputs in "
        f"equal shares and prompts of {PAIR_PROMPT} tokens, {PAIR_PER_STEP} requests a step, evicted requests start "
        f"again. The first requests arrive at random times over one stay, then all others wait: {steps} steps "
        f"({SLOW * steps} with the longest prompt), {seeds} seeds, measured over the completions from {LATE[0]:.0%} "
        f"to {LATE[1]:.0%}.",
        columns=(
            "prompt + output",
            "rule",
            "theory: worst, or divisor",
            "throughput / without evictions",
            "evictions per request",
        ),
        rows=[*rows, *pair_rows],
        verdict="confirmed with limits" if holds else "not confirmed",
        because="With prompts of "
        + ", ".join(str(prompt) for prompt in prompts)
        + " tokens and evictions that lose all work, the throughput falls to "
        + ", ".join(shown(one) for one in starts_again)
        + " of that without evictions; the worst cycle has "
        + ", ".join(f"{worst(prompt, OUTPUT):.3f}" for prompt in prompts)
        + f". Outputs with a common divisor end with at least {min(others):.4f} evictions per request, those without "
        f"end with at most {max(coprime):.4f} if they alternate and {max(drawn):.4f} if they are drawn at random. "
        "Limits: the loss is that of evictions that start again. A request that keeps its tokens, as in vLLM, costs "
        f"one step when it returns, and carries {shown(rates['keeps', first])} in steps of constant duration. And "
        "evictions are not the cause of the loss: a policy that looks ahead and never evicts falls to "
        f"{shown(rates['look-ahead', first])}, because requests still start and end together, while admitting "
        f"{PER_STEP} a step carries {shown(rates['lots', first])}.",
        figure=made,
    )


if __name__ == "__main__":
    main("eviction_cycles", measure)
