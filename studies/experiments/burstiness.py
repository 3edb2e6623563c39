"""TTFT at the same rates with gamma gaps of burstiness 1/4, 1 and 4, simulated and estimated by peakedness."""

import numpy as np
from drawing import COLORS, constant, figure, geometric, linear, main, means, point, scenario, whole

from simqueue.experiment.build import build_all
from simqueue.experiment.demand import asked_of, offered
from simqueue.experiment.served import limits_of, served
from simqueue.scenario import from_mapping
from simqueue.theory.operating_point import operating_point


def measure(small):
    made, ax = figure()
    for burstiness, color in zip((4.0,) if small else (0.25, 1.0, 4.0), COLORS, strict=False):
        arrivals = {"process": "gamma", "rate_rps": 4.0, "burstiness": burstiness}
        run = scenario(4.0, constant(500), geometric(100), 3000, {"p": whole(32)}, linear(0.02, 5e-4, 2e-5))
        run["workload"]["arrivals"] = arrivals
        described = from_mapping(run).resolve()
        step_time = described.policy("p").step_time
        policy = build_all(described)["p"]
        asked, by = asked_of(policy, offered(described)), served(described, described.policy("p"), policy)
        capacity = limits_of(step_time, by, asked).server.capacity
        limit, known = capacity.max_rate_rps, {"gap_scv": asked.gap_scv, "known": capacity}
        shares = np.linspace(0.1, 0.93, 2 if small else 60)
        given = step_time, asked.lengths, by.server
        line = [1000 * operating_point(*given, share * limit, **known).ttft_s for share in shares]
        ax.plot(shares, line, color=color, label=f"burstiness {burstiness:g}")
        for share in (0.6,) if small else (0.3, 0.6, 0.8, 0.9):
            rate = share * limit
            run["workload"]["arrivals"] = {**arrivals, "rate_rps": rate}
            run["warmup_s"] = 400 / rate
            found = means(run, "mean_ttft_ms", small)["p"]
            estimate = 1000 * operating_point(*given, rate, **known).ttft_s
            print(
                f"burstiness {burstiness}: load {share}: estimate {estimate:.0f} ms, "
                f"simulated {found.value:.0f} ±{found.half_width:.0f}"
            )
            point(ax, share, found, color)
    ax.set(
        xlabel="load",
        ylabel="mean TTFT (ms)",
        yscale="log",
        title="TTFT and burstiness: lines estimated, points simulated",
    )
    ax.legend()
    return made


if __name__ == "__main__":
    main("burstiness", measure)
