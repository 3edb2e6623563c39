"""Prompts apart or mixed (Zhang et al.): when exclusive batching carries more, and how many free seats to wait for."""

import numpy as np
from drawing import COLORS, POOL, constant, figure, geometric, linear, point, whole
from scipy.optimize import brentq
from trials import Trial, backlog, intervals, main, middle_rate, ratios, shown

PREFILL_FIXED_S, PREFILL_TOKEN_S = 4.69e-3, 5.01e-5
DECODE_FIXED_S, DECODE_TOKEN_S = 10.38e-3, 1.039e-4
PROMPT, OUTPUT = 512, 256
SEATS = (32, 256)
RATIOS = (0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4)
REFILLS = (0.01, 0.03, 0.06, 0.12, 0.25, 0.5, 0.9)
GPUS = {"RTX PRO 6000, 1.8 TB/s": ("rtx-pro-6000", "vllm-rtx-pro-6000"), "H200, 4.8 TB/s": ("h200-sxm", "vllm-h200")}
MODEL, GPU_REFILLS = "llama-3.1-8b", (1, 4, 16, 32, 64, 128)
TOKEN_S = (PREFILL_TOKEN_S * PROMPT + DECODE_TOKEN_S * OUTPUT) / (PROMPT + OUTPUT)
"""Cost of a token in exclusive steps, prompts and outputs together."""
APART = linear(PREFILL_FIXED_S, DECODE_TOKEN_S, PREFILL_TOKEN_S) | {"decode_base_s": DECODE_FIXED_S - PREFILL_FIXED_S}


def best_share():
    """Share of the seats that are to be free before prompts run, by the published condition for geometric outputs."""
    target = PREFILL_FIXED_S / DECODE_FIXED_S / OUTPUT
    return brentq(lambda share: share / (1 - share) + np.log(1 - share) - target, 1e-9, 1 - 1e-9)


def apart_s(refill, seats):
    """Time per request with prompts apart: fixed costs of a cycle over its requests, and its tokens."""
    cycle = PREFILL_FIXED_S - DECODE_FIXED_S * np.log(1 - refill / seats) * OUTPUT
    return cycle / refill + TOKEN_S * (PROMPT + OUTPUT)


def mixed_s(ratio, seats):
    """Time per request in mixed steps, whose tokens cost `ratio` times as much."""
    return DECODE_FIXED_S * (1 + OUTPUT) / seats + ratio * TOKEN_S * (PROMPT + OUTPUT)


def crossing(seats):
    """Cost of a token in mixed steps over that in steps apart at which both carry the same, by the condition."""
    refill = round(best_share() * seats)
    return brentq(lambda ratio: mixed_s(ratio, seats) - apart_s(refill, seats), 0.1, 10)


def settings(replications):
    return {
        "replications": replications,
        "step_time": APART,
        "kv_cache": POOL,
        "prompt_tokens": constant(PROMPT),
        "output_tokens": geometric(OUTPUT),
    }


def rates(policies, requests, replications):
    found = backlog(policies, requests, **settings(replications))
    return [(name, middle_rate(one, np.ones(requests))) for name, one in found]


def exclusive(seats, refill):
    return {**whole(seats), "scheduler": "exclusive", "refill": refill}


def gains(seats, costs, requests, replications):
    """Return, per cost ratio, the interval of the throughput with prompts apart over that of mixed steps."""
    token = {f"mixed-{place}": ratio * TOKEN_S for place, ratio in enumerate(costs)}
    policies = {"apart": exclusive(seats, round(best_share() * seats))}
    policies |= {name: {**whole(seats), "step_time": linear(DECODE_FIXED_S, one, one)} for name, one in token.items()}
    return list(ratios(rates(policies, requests, replications), "apart").values())


def on_gpu(gpu, preset, tried, requests, replications):
    """Return, per refill, the interval of the throughput apart over that of chunks, with a preset of this package."""
    seats = SEATS[-1]
    chunked = {"scheduler": "chunked", "max_num_seqs": seats, "max_num_batched_tokens": 8192}
    policies = {"mixed": chunked} | {f"k{refill}": exclusive(seats, refill) for refill in tried}
    found = backlog(
        policies,
        requests,
        **settings(replications) | {"model": MODEL, "gpu": gpu, "step_time": {"kind": "roofline", "preset": preset}},
    )
    over_mixed = ratios([(name, 1 / middle_rate(one, np.ones(requests))) for name, one in found], "mixed")
    return {refill: over_mixed[f"k{refill}"] for refill in tried}


def crossed(costs, found):
    """Cost ratio at which the simulated gains cross 1, between two points."""
    means = [one.value for one in found]
    return float(np.interp(1, means, costs))


def crossover(ax, sizes, costs, requests, replications):
    """Draw the gain over the cost of mixed tokens; return its rows, its largest error, and where both are equal."""
    rows, errors, equal = [], [], {}
    line = np.linspace(costs[0], costs[-1], 50)
    for seats, color in zip(sizes, COLORS, strict=False):
        found = gains(seats, costs, requests, replications)
        refill = round(best_share() * seats)
        ax.plot(line, mixed_s(line, seats) / apart_s(refill, seats), color=color, label=f"{seats} seats")
        for ratio, one in zip(costs, found, strict=True):
            expected = mixed_s(ratio, seats) / apart_s(refill, seats)
            point(ax, ratio, one, color)
            errors.append(abs(one.value / expected - 1))
            rows.append((f"{seats} seats, mixed tokens cost {ratio:g} times", f"{expected:.3f}", shown(one)))
        equal[seats] = crossing(seats), crossed(costs, found)
    ax.axhline(1, color="0.4", linestyle="--")
    ax.set(
        xlabel="cost of a token in mixed steps / in steps apart",
        ylabel="throughput apart / mixed",
        title="Lines: the published condition, points: simulated",
    )
    ax.legend()
    return rows, max(errors), equal


def refills(ax, seats, shares, requests, replications):
    """Draw the throughput over the seats that are free when prompts run; return its rows and the best share."""
    names = {f"k{round(share * seats)}": round(share * seats) for share in shares}
    policies = {name: exclusive(seats, refill) for name, refill in names.items()}
    found = intervals(rates(policies, requests, replications))
    grid = np.geomspace(1, 0.95 * seats, 100)
    ax.plot(grid / seats, 1 / apart_s(grid, seats), color=COLORS[0], label="theory")
    rows = []
    for name, refill in names.items():
        point(ax, refill / seats, found[name], COLORS[1], "simulated" if not rows else None)
        case = f"{seats} seats, prompts at {refill} free seats"
        rows.append((case, f"{1 / apart_s(refill, seats):.3f} requests/s", shown(found[name])))
    ax.axvline(best_share(), color="0.4", linestyle="--", label=f"published optimum, {best_share():.3f}")
    ax.set(
        xscale="log",
        xlabel="free seats at which prompts run / seats",
        ylabel="throughput (requests/s)",
        title=f"Prompts apart, {seats} seats",
    )
    ax.legend(loc="lower left")
    return rows, names[max(found, key=lambda name: found[name].value)] / seats


def gpus(ax, chosen, tried, seats, requests, replications):
    """Draw the gain on two GPUs over the free seats; return its rows and the best gain of each."""
    rows, best = [], {}
    for (name, (gpu, preset)), color in zip(chosen, COLORS, strict=False):
        found = on_gpu(gpu, preset, tried, requests, replications)
        for refill, one in found.items():
            point(ax, refill / seats, one, color, name if refill == tried[0] else None)
            rows.append((f"{name}, {seats} seats, prompts at {refill} free seats", "", shown(one)))
        best[name.partition(",")[0]] = max(found.values(), key=lambda one: one.value)
    ax.axhline(1, color="0.4", linestyle="--")
    ax.set(
        xscale="log",
        xlabel="free seats at which prompts run / seats",
        ylabel="throughput apart / mixed",
        title=f"{MODEL} with presets measured on servers",
    )
    ax.legend()
    return rows, best


def measure(small):
    """Test the crossover of Zhang et al."""
    sizes, replications, every = (SEATS[:1], 2, 3) if small else (SEATS, 4, 1)
    requests, in_sweep, on_gpus = (40, 40, 40) if small else (10 * SEATS[-1], 6 * SEATS[-1], 1500)
    made, axes = figure(panels=3, width=17)
    rows, error, equal = crossover(axes[0], sizes, RATIOS[::every], requests, replications)
    refill_rows, best_refill = refills(axes[1], SEATS[-1], REFILLS[::every], in_sweep, replications)
    chosen = list(GPUS.items())[::every]
    gpu_rows, best = gpus(axes[2], chosen, GPU_REFILLS[::every], SEATS[-1], on_gpus, replications)
    return Trial(
        title="Prompts apart or mixed",
        claim="Zhang, Nie, Pang, Ma and Wu (arXiv 2606.00516): mixing is not always better. Prompts apart (decode "
        "until k seats are free, then refill them) carry more if a token costs more in mixed steps by enough to pay "
        "for the additional fixed costs: β_mixed − β_apart > [(α_p − α_d ln(1 − θ) O) / k − α_mixed (1 + O) / N] / "
        "(P + O), with k = θ N and θ / (1 − θ) + ln(1 − θ) = α_p / (α_d O).",
        source="Abstract, and the authors' code, whose comments state both formulas; the proofs were not read.",
        setting=f"The authors' constants for Qwen3-8B on an RTX PRO 6000: prompt steps {1000 * PREFILL_FIXED_S:g} ms "
        f"+ {1e6 * PREFILL_TOKEN_S:.1f} µs per token, decode steps {1000 * DECODE_FIXED_S:g} ms + "
        f"{1e6 * DECODE_TOKEN_S:.1f} µs per request. Mixed steps have the fixed time of decode steps, and one cost "
        f"per token, which is varied. Prompts of {PROMPT} tokens, geometric outputs with mean {OUTPUT}, a backlog of "
        f"{requests:,} requests, {replications} replications. Right: {MODEL} with the presets "
        + " and ".join(f"`{preset}`" for _, preset in GPUS.values())
        + ", which are partly outside the range of their measurements here; mixed is `chunked` with a budget of "
        "8,192 tokens.",
        columns=("case", "theory", "simulated: throughput apart / mixed, or requests/s"),
        rows=[*rows, *refill_rows, *gpu_rows],
        verdict="confirmed" if error < 0.05 else "confirmed with limits",
        because="Both carry the same "
        + "; ".join(
            f"with {seats} seats if a token costs {here:.3f} times as much in mixed steps by the condition, "
            f"{there:.3f} times simulated"
            for seats, (here, there) in equal.items()
        )
        + f". All ratios are within {100 * error:.1f} % of theory. The best of the simulated refills is "
        f"{best_refill:.3f} of the seats, the published optimum {best_share():.3f}. At equal costs per token "
        "mixing carries more: prompts apart pay only if prompts slow down the decodes beside them. With step times "
        "that were fitted to other servers, the best refill carries "
        + ", ".join(f"{shown(one)} times as much as mixed steps on the {name}" for name, one in best.items())
        + ", as published: the gain is on the GPU with little bandwidth.",
        figure=made,
    )


if __name__ == "__main__":
    main("exclusive_batching", measure)
