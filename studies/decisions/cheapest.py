"""Which system serves an hour of recorded conversations cheapest, with intervals and the error of the step times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import simqueue as sq
from simqueue.decisions.judgement import Judged
from simqueue.decisions.tuning.answer import Standing, Tuning
from simqueue.experiment.model_error import PublishedError, published_errors
from simqueue.figures.canvas import new_figure
from simqueue.figures.canvas import write as write_figure
from simqueue.figures.style import figure_style, line_styles

MODEL: Final = "qwen3-32b"
PRESET: Final = "vllm-h100-qwen3-32b"
LIMITS: Final = ("p99_ttft_ms<=1000", "p99_itl_ms<=50")
SYSTEMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "H100": {"gpu": "h100-sxm", "tensor_parallel": 1},
    "2 × H100": {"gpu": "h100-sxm", "tensor_parallel": 2},
    "H200": {"gpu": "h200-sxm", "tensor_parallel": 1},
    "4 × L40S": {"gpu": "l40s", "tensor_parallel": 4},
}
"""What one replica is made of."""
_FIGURES: Final = "decisions"


@dataclass(frozen=True, slots=True)
class Size:
    """How much is simulated.

    Attributes
    ----------
    replicas, budgets : sequence of int
        Numbers of replicas, and token budgets of a step, that are tried.
    end_row : int or None
        Requests of the recording, from its first one; None: all.
    replications : int
        Most of one fleet.
    """

    replicas: Sequence[int] = (1, 2, 3, 4)
    budgets: Sequence[int] = (256, 512, 1024)
    end_row: int | None = None
    replications: int = 8


SIZE: Final = Size()


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for one system.

    Attributes
    ----------
    error : PublishedError
        Of its step times.
    answers : mapping of float to Tuning
        Factor of the step times -> the cheapest number of replicas and its budget.
    """

    error: PublishedError
    answers: Mapping[float, Tuning]

    @property
    def costs(self) -> list[float | None]:
        """USD per hour of each answer, with shorter steps first; None: no system keeps the limits."""
        return [_cost(self.answers[factor].best) for factor in sorted(self.answers)]


def write(folder: Path, size: Size = SIZE, workers: int | None = None) -> list[Path]:
    """Measure, write the page and its figure to a folder, and return their paths."""
    (folder / _FIGURES).mkdir(parents=True, exist_ok=True)
    page, figure = folder / "decisions-cheapest.md", f"{_FIGURES}/cheapest.png"
    found = measured(size, workers)
    text = ["<!-- written by: python -m studies.decisions cheapest -->", *lines(found, figure)]
    draw(found, folder / figure)
    page.write_text("\n".join(text).rstrip() + "\n", encoding="utf-8", newline="\n")
    return [page, folder / figure]


def measured(size: Size = SIZE, workers: int | None = 1) -> dict[str, Found]:
    """Search the cheapest fleet of each system."""
    return {name: _found(keys, size, workers) for name, keys in SYSTEMS.items()}


def scenario_of(keys: Mapping[str, Any], size: Size = SIZE) -> dict[str, Any]:
    """Return the scenario of one replica of a system.

    A replication has each request of the hour with a probability of 1/2, twice as fast. So its rate is that of the
    hour, and values differ between replications as much as those of hours would that are drawn from it.
    """
    trace = {"name": "azure-2023-conversation", "thin": 0.5, "rate_scale": 2.0, "end_row": size.end_row}
    policy = {
        "engine": "vllm",
        "version": "0.33.0",
        **keys,
        "fleet": {"replicas": 1, "router": {"kind": "least_outstanding", "ties": "first"}},
    }
    return {
        "name": "azure-hour",
        "model": MODEL,
        "step_time": {"kind": "roofline", "preset": PRESET},
        "workload": {"trace": trace},
        "policies": {"vllm": policy},
    }


def _found(keys: Mapping[str, Any], size: Size, workers: int | None) -> Found:
    scenario = scenario_of(keys, size)
    middle = _searched(scenario, size, 1.0, workers)
    chosen = {} if middle.best is None else middle.best.values
    at = [f"policies.vllm.{key}={value}" for key, value in chosen.items()]
    error = published_errors(sq.run(scenario, overrides=at))["vllm"]
    answers = {1.0: middle}
    for factor in error.factors or ():
        answers[factor] = _searched(scenario, size, factor, workers)
    return Found(error, answers)


def _searched(scenario: Mapping[str, Any], size: Size, factor: float, workers: int | None) -> Tuning:
    return sq.tune(
        {**scenario, "step_time_factor": factor},
        {"fleet.replicas": list(size.replicas), "max_num_batched_tokens": list(size.budgets)},
        LIMITS,
        max_replications=size.replications,
        workers=workers,
    )


def lines(found: Mapping[str, Found], figure: str) -> Iterator[str]:
    """Yield the page."""
    yield "# The cheapest system for an hour of conversations"
    yield ""
    yield (
        "The hour of conversations that was recorded at Azure in November 2023 (19,366 requests, 5.5 per second), "
        f"{MODEL} in bf16, vLLM 0.33.0. P99 of TTFT must be at most 1 s, P99 of ITL at most 50 ms. "
        "Of each system, `sq.tune` finds the cheapest number of replicas and token budget of a step. "
        "Replications are drawn from the hour: each request with a probability of 1/2, played twice as fast. "
        "Intervals are over them, with 95 % confidence. "
        f"All step times are those of the preset {PRESET}; its published error, where it is used for other GPUs too, "
        "is ±e. Prices are the dated examples of `simqueue list gpus`."
    )
    yield ""
    yield f"**{answer(found)}**"
    yield ""
    yield f"![Cost of the cheapest fleet of each system, with step times that are off by their error]({figure})"
    yield ""
    yield "| one replica | replicas | budget | GPUs | USD/hour | P99 TTFT (ms) | P99 ITL (ms) | e | with e | without |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for name, one in found.items():
        yield "| " + " | ".join([name, *_cells(one)]) + " |"
    yield (
        "| prefill and decode apart | - | - | - | - | - | - | - | - | not simulated: there are no transfers of KV "
        "blocks between replicas yet |"
    )
    yield ""
    yield (
        "`with e` is what the cheapest fleet costs if all steps take less or more time by e. The last column says why "
        "the next cheaper fleets do not keep the limits."
    )
    yield ""


def answer(found: Mapping[str, Found]) -> str:
    """Return which system is the cheapest, and whether that is sure within the error."""
    costs = {name: cost for name, one in found.items() if (cost := _cost(one.answers[1.0].best)) is not None}
    if not costs:
        return "No system keeps the limits."
    best = min(costs, key=lambda name: costs[name])
    own = found[best].costs
    doubts = []
    if len(own) < 2:
        doubts.append(f"no error is published for {best}")
    rivals = [name for name, one in found.items() if name != best and _may_be_cheaper(one.costs, own)]
    if rivals:
        doubts.append(f"within the published error of the step times, {' or '.join(rivals)} can be as cheap or cheaper")
    sure = "; ".join(doubts) or "no other system is as cheap within the published error of the step times"
    return f"{best} is the cheapest: {costs[best]:.2f} USD per hour; {sure}."


def _may_be_cheaper(rival: Sequence[float | None], best: Sequence[float | None]) -> bool:
    """Return whether the least that a rival can cost is at most what the best can cost."""
    least = min((cost for cost in rival if cost is not None), default=None)
    if least is None:
        return False
    return None in best or least <= max(cost for cost in best if cost is not None)


def _cells(one: Found) -> Iterator[str]:
    middle = one.answers[1.0]
    best = middle.best
    if best is None:
        nearest = middle.nearest
        yield from ("-",) * 4
        yield from (_value(nearest, column) for column in ("p99_ttft_ms", "p99_itl_ms")) if nearest else ("-", "-")
    else:
        yield str(best.values["fleet.replicas"])
        yield str(best.values["max_num_batched_tokens"])
        yield str(best.gpus)
        yield _usd(_cost(best))
        yield from (_value(best, column) for column in ("p99_ttft_ms", "p99_itl_ms"))
    share = one.error.share
    yield f"-: {one.error.reason}" if share is None else f"{100 * share:.1f} % ({one.error.reason})"
    ends = [one.answers[factor] for factor in sorted(one.answers) if factor != 1]
    yield " to ".join(dict.fromkeys(_usd(_cost(end.best)) for end in ends)) or "-"
    yield "; ".join(f"{reason} ({count})" for reason, count in _fallen(middle).items()) or "-"


def _fallen(found: Tuning) -> dict[str, int]:
    """Return why fleets that cost less than the best one fell, and how many."""
    limit = _cost(found.best)
    counts: dict[str, int] = {}
    for one in found.standings:
        cost = _cost(one)
        if one is not found.best and (limit is None or (cost is not None and cost < limit)):
            reason = (one.reason or one.state).split(": ")[0]
            counts[reason] = counts.get(reason, 0) + 1
    return counts


def _cost(one: Standing | None) -> float | None:
    return None if one is None else one.usd_per_hour


def _usd(cost: float | None) -> str:
    return "none keeps them" if cost is None else f"{cost:.2f}"


def _value(one: Standing, column: str) -> str:
    judged: Judged | None = next((found for found in one.limits if found.condition.column == column), None)
    if judged is None or judged.value is None:
        return "-"
    ends = "" if judged.low is None or judged.high is None else f" [{judged.low:,.4g}, {judged.high:,.4g}]"
    return f"{judged.value:,.4g}{ends}"


def draw(found: Mapping[str, Found], path: Path) -> None:
    """Draw what the cheapest fleet of each system costs, and the range of it within the error."""
    with figure_style():
        figure = new_figure(height=3.2)
        ax = figure.subplots()
        (style,) = line_styles(1)
        names = list(found)
        for y, name in enumerate(names):
            costs = [cost for cost in found[name].costs if cost is not None]
            middle = _cost(found[name].answers[1.0].best)
            if len(costs) > 1:
                ax.plot([min(costs), max(costs)], [y, y], color=style.color, linewidth=2)
            if middle is not None:
                ax.plot([middle], [y], "o", color=style.color)
                ax.annotate(f"{middle:.2f}", (middle, y), textcoords="offset points", xytext=(0, 7), ha="center")
            elif costs:
                ax.plot([min(costs)], [y], "o", color=style.color, markerfacecolor="white")
                text = f"{min(costs):.2f}, only with shorter steps"
                ax.annotate(text, (min(costs), y), textcoords="offset points", xytext=(-8, -3), ha="right")
            else:
                ax.annotate("no fleet keeps the limits", (0, y), textcoords="offset points", xytext=(6, -3))
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.5, -0.6)
        ax.set_xlim(left=0)
        ax.set_xlabel("cheapest fleet that keeps the limits (USD/hour); line: step times off by their published error")
        ax.set_ylabel("one replica")
        write_figure(figure, path)
