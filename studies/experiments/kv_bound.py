"""Capacity over the size of the KV pool, with paged blocks and with reservations, up to the limit of the slots."""

from drawing import COLORS, constant, figure, geometric, linear, main, point

from simqueue.experiment.offered_load import policy_loads
from simqueue.experiment.rates import saturation_throughput
from simqueue.scenario import from_mapping

POOLS = {
    "paged": {"layout": "paged"},
    "reserved: prompt + output": {"layout": "contiguous"},
    "reserved: max_model_len 2048": {"layout": "contiguous", "reserve": "model_max"},
}
SIZES = [6_000, 12_000, 16_000, 24_000, 40_000, 70_000]


def measure(small):
    made, ax = figure()
    for (name, pool), color in zip(POOLS.items(), COLORS, strict=False):
        line = []
        for tokens in SIZES[-1:] if small else SIZES:
            loaded = from_mapping(
                {
                    "seed": 1,
                    "step_time": linear(0.02, 5e-4, 2e-5),
                    "kv_cache": {**pool, "block_size": 16, "blocks": tokens // 16},
                    "max_model_len": 2048,
                    "workload": {
                        "arrivals": {"process": "poisson", "rate_rps": 1.0},
                        "prompt_tokens": constant(500),
                        "output_tokens": geometric(100),
                        "num_requests": 100,
                    },
                    "policies": {
                        "p": {"scheduler": "continuous", "max_num_seqs": 64, "max_num_batched_tokens": 64_000}
                    },
                }
            ).resolve()
            limit = policy_loads(loaded)["p"].capacity
            line.append(limit.max_rate_rps)
            found = saturation_throughput(loaded, "p", requests=60 if small else 2000, replications=3)
            error = 100 * (limit.max_rate_rps / found.value - 1)
            print(
                f"{name:28s} {tokens:6d} tokens: {limit.binding:5s} law {limit.max_rate_rps:.3f}, "
                f"simulated {found.value:.3f} ({error:+.1f} %)"
            )
            point(ax, tokens, found, color)
        ax.plot(SIZES[-1:] if small else SIZES, line, color=color, label=name)
    ax.set(
        xlabel="KV pool (tokens)",
        ylabel="capacity (requests/s)",
        ylim=(0, None),
        title="Capacity over the KV pool: lines capacity law, points simulated",
    )
    ax.legend()
    return made


if __name__ == "__main__":
    main("kv_bound", measure)
