"""What the experiments share: scenarios with linear steps, means with intervals, and figures."""

from pathlib import Path

import simqueue as sq
from simqueue.figures import canvas
from simqueue.figures.style import figure_style
from simqueue.statistics.intervals import mean_interval

REPORTS = Path("reports/experiments")
POOL = {"layout": "paged", "block_size": 16, "blocks": 1_000_000}
COLORS = ["#0173b2", "#de8f05", "#029e73", "#cc78bc"]


def constant(value):
    return {"distribution": "constant", "value": value}


def geometric(mean):
    return {"distribution": "geometric", "mean": mean}


def linear(a, b=0.0, c=0.0):
    return {"kind": "linear", "overhead_s": a, "per_decode_s": b, "per_prefill_token_s": c}


def whole(slots, **more):
    return {"scheduler": "continuous", "max_num_seqs": slots, "max_num_batched_tokens": 1_000_000, **more}


def scenario(rate, prompt, output, requests, policies, step_time, **more):
    return {
        "seed": 1,
        "replications": 10,
        "step_time": step_time,
        "kv_cache": POOL,
        "warmup_s": 0.1 * requests / rate,
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": rate},
            "prompt_tokens": prompt,
            "output_tokens": output,
            "num_requests": requests,
        },
        "policies": policies,
        **more,
    }


def means(made, column):
    """Run a scenario; return policy -> Interval of a column of the summary, or None if it is undefined."""
    result = sq.run(made)
    found = {}
    for policy in result.policies:
        values = [row[column] for row in result.replication_rows if row["policy"] == policy]
        found[policy] = None if None in values else mean_interval(values)
    return found


def figure(panels=1, width=7.2):
    """Return a figure and its axes."""
    with figure_style():
        made = canvas.new_figure(width, 4.4)
        axes = made.subplots(1, panels)
    return made, axes


def point(ax, x, interval, color, label=None):
    if interval is not None:
        ax.errorbar(
            x, interval.value, interval.half_width, color=color, marker="o", markersize=4, capsize=3, label=label
        )


def write(made, name):
    canvas.write(made, REPORTS / f"{name}.png")
    print(f"written: {REPORTS / name}.png")
