"""What the experiments share: scenarios with linear steps, means with intervals, and figures."""

import argparse
import inspect
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


def shortened(made):
    """Return a scenario with few and short runs, which only show that it works."""
    return {**made, "replications": 2, "warmup_s": 0, "workload": {**made["workload"], "num_requests": 60}}


def means(made, column, small=False):
    """Run a scenario; return policy -> Interval of a column of the summary, or None if it is undefined."""
    result = sq.run(shortened(made) if small else made)
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


def given_arguments(description):
    """Return what a script was given: `small` and `out`; the folder is there afterwards."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--small", action="store_true", help="few and short runs, which only show that it works")
    parser.add_argument("--out", type=Path, default=REPORTS, help="folder of what is written (%(default)s)")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    return given


def main(name, measure):
    """Print what is measured and write the figure; `measure` is told whether few and short runs will do."""
    given = given_arguments(inspect.getmodule(measure).__doc__)
    path = given.out / f"{name}.png"
    canvas.write(measure(given.small), path)
    print(f"written: {path}")
