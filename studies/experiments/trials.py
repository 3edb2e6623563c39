"""What trials of published results share: runs with a backlog or with arrivals, and the page with its verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import own_policies  # noqa: F401 - registers the policies
from drawing import given_arguments
from matplotlib.figure import Figure

import simqueue as sq
from simqueue.figures import canvas
from simqueue.statistics.intervals import Interval, mean_interval

VERDICTS = ("confirmed", "confirmed with limits", "not confirmed")
MIDDLE = (0.2, 0.8)
"""Shares of the completions between which a backlog is measured, without filling and draining."""

COLUMNS = ("arrival_s", "queue_ms", "ttft_ms", "finish_s", "prompt_tokens", "output_tokens", "preemptions")
Requests = list[tuple[str, dict[str, np.ndarray]]]


@dataclass(frozen=True)
class Trial:
    """What a trial found.

    Attributes
    ----------
    title, claim, source, setting : str
        `source` says what of the publication was read.
    columns, rows : of the table with the measured numbers
    verdict : str
        One of `VERDICTS`.
    because : str
        What decided it, with numbers.
    """

    title: str
    claim: str
    source: str
    setting: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    verdict: str
    because: str
    figure: Figure


def main(name: str, measure: Callable[[bool], Trial]) -> None:
    """Measure, print the page, and write it with its figure and the section of README.md."""
    given = given_arguments(measure.__doc__)
    found = measure(given.small)
    publish(name, found, given.out)
    print(page(name, found))


def publish(name: str, found: Trial, folder: Path) -> None:
    """Write the figure, the page of the trial, and its section in README.md, if the folder has one."""
    canvas.write(found.figure, folder / f"{name}.png")
    (folder / f"{name}.md").write_text(page(name, found), encoding="utf-8")
    readme = folder / "README.md"
    if not readme.exists():
        return
    text = readme.read_text(encoding="utf-8")
    begin, end = marks(name)
    before, _, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_end:
        raise SystemExit(f"{readme}: has no section between {begin} and {end}")
    readme.write_text(before + begin + "\n" + section(name, found) + end + after, encoding="utf-8")


def marks(name: str) -> tuple[str, str]:
    """Return the comments before and after the section of a trial in README.md."""
    return f"<!-- by python studies/experiments/{name}.py -->", f"<!-- end of {name} -->"


def section(name: str, found: Trial) -> str:
    """Return the section of README.md: claim, figure and verdict."""
    return (
        f"\n### {found.title} (`{name}.py`)\n\n{found.claim}\n\n![{found.title}]({name}.png)\n\n"
        f"**Verdict: {found.verdict}.** {found.because} [Numbers]({name}.md).\n\n"
    )


def page(name: str, found: Trial) -> str:
    """Return the page of a trial."""
    if found.verdict not in VERDICTS:
        raise ValueError(found.verdict)
    head = "| " + " | ".join(found.columns) + " |\n" + "|---" * len(found.columns) + "|\n"
    table = head + "".join("| " + " | ".join(row) + " |\n" for row in found.rows)
    return (
        f"<!-- made by python studies/experiments/{name}.py; do not edit -->\n# {found.title}\n\n"
        f"**Claim.** {found.claim}\n\n**Source.** {found.source}\n\n**Setting.** {found.setting}\n\n"
        f"![{found.title}]({name}.png)\n\n{table}\n**Verdict: {found.verdict}.** {found.because}\n\n"
        "Values are means over replications ± the half-width of a 95 % t-interval; a value without ± is the same in "
        "every replication. Policies see the same requests, and ratios are taken per replication.\n"
    )


def shown(interval: Interval, digits: int = 3) -> str:
    """Return a mean with its half-width, if it varies."""
    width = interval.half_width
    return f"{interval.value:.{digits}f}" + (f" ±{width:.{digits}f}" if width is not None and width > 1e-9 else "")


def simulated(policies: dict[str, Any], arrivals: dict[str, Any], requests: int, **scenario: Any) -> Any:
    """Run policies on the same requests, in this process; `scenario` has the lengths beside its own keys."""
    workload = {"arrivals": arrivals, "num_requests": requests}
    workload |= {key: scenario.pop(key) for key in ("prompt_tokens", "output_tokens")}
    return sq.run({"seed": 1, **scenario, "workload": workload, "policies": policies}, workers=1)


def runs(policies: dict[str, Any], arrivals: dict[str, Any], requests: int, **scenario: Any) -> Requests:
    """Run policies on the same requests; return (policy, columns of the requests table) per replication."""
    table = simulated(policies, arrivals, requests, **scenario).requests
    groups = table.groupby(["policy", "replication"], sort=False)
    return [(str(policy), {name: one[name].to_numpy() for name in COLUMNS}) for (policy, _), one in groups]


def backlog(policies: dict[str, Any], requests: int, **scenario: Any) -> Requests:
    """The same with all requests waiting at time 0."""
    return runs(policies, {"process": "all_at_once"}, requests, **scenario)


def middle_rate(requests: dict[str, np.ndarray], weights: np.ndarray, between: tuple[float, float] = MIDDLE) -> float:
    """Return the sum of weights per second of the completions in the middle of a backlog (a wave ends at one time)."""
    finish_s = requests["finish_s"]
    low_s, high_s = np.quantile(finish_s, between, method="inverted_cdf")
    return float(weights[(finish_s > low_s) & (finish_s <= high_s)].sum() / (high_s - low_s))


def growth(requests: dict[str, np.ndarray]) -> float:
    """Return which share of the arrivals of the second half of the arrivals' time stays in the system."""
    arrival_s, finish_s = requests["arrival_s"], np.sort(requests["finish_s"])
    end = arrival_s[-1]
    arrived = np.searchsorted(arrival_s, [end / 2, end], side="right")
    left = np.searchsorted(finish_s, [end / 2, end], side="right")
    return float(1 - (left[1] - left[0]) / (arrived[1] - arrived[0]))


def by_policy(found: Sequence[tuple[str, Any]]) -> dict[str, list[Any]]:
    """Return policy -> values of its replications, in their order."""
    grouped: dict[str, list[Any]] = {}
    for policy, value in found:
        grouped.setdefault(policy, []).append(value)
    return grouped


def intervals(found: Sequence[tuple[str, float]]) -> dict[str, Interval]:
    """Return policy -> interval over its replications."""
    return {policy: mean_interval(values) for policy, values in by_policy(found).items()}


def ratios(found: Sequence[tuple[str, float]], over: str) -> dict[str, Interval]:
    """Return policy -> interval of the ratio of the values of `over` to its own, replication by replication."""
    grouped = by_policy(found)
    base = np.array(grouped.pop(over))
    return {policy: mean_interval((base / np.array(values)).tolist()) for policy, values in grouped.items()}


def stationary(chain: np.ndarray) -> np.ndarray:
    """Return the stationary law of a Markov chain, whose rows add up to 1."""
    system = chain.T - np.eye(len(chain))
    system[-1] = 1
    law = np.zeros(len(chain))
    law[-1] = 1
    return np.linalg.solve(system, law)
