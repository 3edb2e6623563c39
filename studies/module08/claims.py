"""The module's claims about its simulator, each tried at every load of both step costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from simqueue.results.result import Result
from studies.module08.sweep import CHUNKS, COSTS, Cost, loads, ratio, spread, value

Swept = Mapping[str, Mapping[float, Result]]
"""Cost -> arrival rate -> result."""
Holds = Literal["yes", "no", "unclear"]
Ratio = tuple[float, float | None] | None
_LARGEST_LOSS = 0.02
_LONGEST_TAIL = 2.5


@dataclass(frozen=True, slots=True)
class Trial:
    """One claim at one load.

    Attributes
    ----------
    cost : str
    rate_rps : float
    load : float or None
        Of the continuous policy.
    seen : tuple of str
        What came out, by the columns of the claim.
    holds : {"yes", "no", "unclear"}
        Unclear where an interval holds both sides of what is claimed.
    """

    cost: str
    rate_rps: float
    load: float | None
    seen: tuple[str, ...]
    holds: Holds


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim on trial.

    Attributes
    ----------
    number : int
    text : str
        What the module says.
    own : str
        What its own program gives.
    columns : tuple of str
    against : str
        Where the module's own program speaks against the claim; empty where the verdict needs no such word.
    trials : list of Trial
    """

    number: int
    text: str
    own: str
    columns: tuple[str, ...]
    against: str = ""
    trials: list[Trial] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """Where it holds, in words."""
        held = [trial for trial in self.trials if trial.holds == "yes"]
        if not held:
            return f"is not shown to hold at any load tried{self._unclear()}"
        if len(held) == len(self.trials):
            return "holds at every load tried" + self._against()
        return "holds " + "; ".join(self._where(cost.name) for cost in COSTS) + self._unclear() + self._against()

    def _against(self) -> str:
        return f"; not in {self.against}" if self.against else ""

    def _unclear(self) -> str:
        n = sum(trial.holds == "unclear" for trial in self.trials)
        return f" ({n} of {len(self.trials)} loads are unclear)" if n else ""

    def _where(self, cost: str) -> str:
        own = [trial for trial in self.trials if trial.cost == cost]
        rates = ", ".join(f"{trial.rate_rps:g}" for trial in own if trial.holds == "yes")
        return f"under {cost} at {rates} requests/s" if rates else f"nowhere under {cost}"


Rule = Callable[[Result], tuple[tuple[str, ...], Holds]]
Own = Mapping[str, Mapping[str, Mapping[str, float]]]


def claims(swept: Swept, own: Own) -> list[Claim]:
    """Return claims 1 to 5 and 7 with a trial at each load; 6 is about the bench, 8 about single numbers."""
    found = []
    for number, text, columns, rule, told in _CLAIMS:
        claim = Claim(number, text, _own(own, told), columns, _against(own) if number == 5 else "")
        for cost, rate, result in _results(swept):
            seen, holds = rule(result)
            load = loads(result, ["continuous"])["continuous"]
            claim.trials.append(Trial(cost.name, rate, load, seen, holds))
        found.append(claim)
    return found


def _results(swept: Swept) -> Iterator[tuple[Cost, float, Result]]:
    for cost in COSTS:
        for rate in cost.rates_rps:
            yield cost, rate, swept[cost.name][rate]


def _own(own: Own, told: Callable[[Mapping[str, Mapping[str, float]]], str]) -> str:
    return "; ".join(f"{clock}: {told(metrics)}" for clock, metrics in own.items())


def _against(own: Own) -> str:
    """Name the runs of the module's own program whose TPOT tail is longer than claim 5 allows."""
    over = [
        f"{clock}: {found:.3g}"
        for clock, runs in own.items()
        if (found := runs["continuous"]["tpot_p95"] / runs["continuous"]["tpot_p50"]) > _LONGEST_TAIL
    ]
    return f"the module's own run ({'; '.join(over)})" if over else ""


def _shown(found: Ratio) -> str:
    if found is None:
        return "-"
    mean, width = found
    return f"{mean:.3g}" if not width else f"{mean:.3g} ±{width:.2g}"


def _within(found: Ratio, low: float, high: float) -> Holds:
    """Say whether a mean lies between two limits, as far as its interval tells."""
    if found is None:
        return "unclear"
    mean, width = found[0], found[1] or 0.0
    if low <= mean - width and mean + width <= high:
        return "yes"
    return "no" if mean + width < low or mean - width > high else "unclear"


def _all(*parts: Holds) -> Holds:
    return "no" if "no" in parts else "unclear" if "unclear" in parts else "yes"


def _static(result: Result) -> tuple[tuple[str, ...], Holds]:
    ttft = ratio(result, "p95_ttft_ms", "static", "continuous")
    tokens = ratio(result, "output_throughput", "continuous", "static")
    return (_shown(ttft), _shown(tokens)), _all(_within(ttft, 3, 4), _within(tokens, 2, 2.6))


def _small_chunks(result: Result) -> tuple[tuple[str, ...], Holds]:
    small, middle = (ratio(result, "p95_ttft_ms", f"chunked-{n}", "continuous") for n in (8, 32))
    tokens = ratio(result, "output_throughput", "chunked-8", "continuous")
    holds = _all(_within(small, 0, 0.5), _within(middle, 0, 1), _within(tokens, 1 - _LARGEST_LOSS, math.inf))
    return (_shown(small), _shown(middle), _shown(tokens)), holds


def _tail_only(result: Result) -> tuple[tuple[str, ...], Holds]:
    tails = {n: ratio(result, "p95_ttft_ms", f"chunked-{n}", "continuous") for n in CHUNKS}
    best = min(CHUNKS, key=lambda n: found[0] if (found := tails[n]) else math.inf)
    seen, holds = tail_not_middle(result, best)
    return (str(best), *seen), holds


def tail_not_middle(result: Result, chunk: int) -> tuple[tuple[str, ...], Holds]:
    """Judge claim 3 of one chunk: TTFT p95 below that of continuous, and p50 within 10 % of it."""
    tail, middle = (ratio(result, f"{q}_ttft_ms", f"chunked-{chunk}", "continuous") for q in ("p95", "median"))
    return (_shown(tail), _shown(middle)), _all(_within(tail, 0, 1), _within(middle, 0.9, 1.1))


def _larger_chunks(result: Result) -> tuple[tuple[str, ...], Holds]:
    tokens = [value(result, "output_throughput", f"chunked-{n}") or 0.0 for n in CHUNKS]
    tails = [value(result, "p95_ttft_ms", f"chunked-{n}") or 0.0 for n in CHUNKS]
    seen = (" < ".join(map(str, CHUNKS)), ", ".join(f"{v:,.0f}" for v in tokens), ", ".join(f"{v:,.0f}" for v in tails))
    return seen, _all(*(larger_pays(result, *pair)[1] for pair in pairwise(CHUNKS)))


def larger_pays(result: Result, small: int, large: int) -> tuple[tuple[str, ...], Holds]:
    """Judge claim 4 of two chunks: the larger has no fewer tokens/s, and no better TTFT p95."""
    tokens, tail = (
        ratio(result, metric, f"chunked-{large}", f"chunked-{small}") for metric in ("output_throughput", "p95_ttft_ms")
    )
    return (_shown(tokens), _shown(tail)), _all(_within(tokens, 1, math.inf), _within(tail, 1, math.inf))


def tpot_tail(result: Result) -> tuple[tuple[str, ...], Holds]:
    """Judge claim 5: TPOT p95 of continuous at most 2.5 times its median."""
    found = spread(result, "p95_tpot_ms", "median_tpot_ms", "continuous")
    return (_shown(found),), _within(found, 0, _LONGEST_TAIL)


def static_is_worse(result: Result) -> tuple[tuple[str, ...], Holds]:
    """Judge claim 7: TTFT p50 and p95 of static are no better than those of continuous."""
    middle, tail = (ratio(result, f"{q}_ttft_ms", "static", "continuous") for q in ("median", "p95"))
    return (_shown(middle), _shown(tail)), _all(_within(middle, 1, math.inf), _within(tail, 1, math.inf))


_NAMES = {"ttft_p95": "TTFT p95", "ttft_p50": "TTFT p50", "tok_s": "tokens/s"}


def _over(metric: str, first: str, second: str) -> Callable[[Mapping[str, Mapping[str, float]]], str]:
    return lambda found: f"{_NAMES[metric]} {first} over {second} {found[first][metric] / found[second][metric]:.3g}"


def _both(*parts: Callable[[Mapping[str, Mapping[str, float]]], str]) -> Callable[..., str]:
    return lambda found: ", ".join(part(found) for part in parts)


_CLAIMS: tuple[tuple[int, str, tuple[str, ...], Rule, Callable[..., str]], ...] = (
    (
        1,
        "static has 3 to 4 times the TTFT p95 of continuous and 2.3 times fewer tokens/s",
        ("TTFT p95, static / continuous", "tokens/s, continuous / static"),
        _static,
        _both(_over("ttft_p95", "static", "continuous"), _over("tok_s", "continuous", "static")),
    ),
    (
        2,
        "chunks of 8 halve TTFT p95 for 1 to 2 % of the throughput; chunks of 32 lie between",
        ("TTFT p95, chunked-8 / continuous", "chunked-32 / continuous", "tokens/s, chunked-8 / continuous"),
        _small_chunks,
        _both(_over("ttft_p95", "chunked-8", "continuous"), _over("tok_s", "chunked-8", "continuous")),
    ),
    (
        3,
        "chunking improves the tail of TTFT and not its middle",
        ("best chunk", "TTFT p95, it / continuous", "TTFT p50, it / continuous"),
        _tail_only,
        _both(_over("ttft_p95", "chunked-8", "continuous"), _over("ttft_p50", "chunked-8", "continuous")),
    ),
    (
        4,
        "a larger chunk raises tokens/s and worsens TTFT p95",
        ("chunks", "tokens/s", "TTFT p95 (ms)"),
        _larger_chunks,
        _both(_over("tok_s", "chunked-512", "chunked-8"), _over("ttft_p95", "chunked-512", "chunked-8")),
    ),
    (
        5,
        "TPOT p95 of continuous is at most 2 to 2.5 times its median",
        ("TPOT p95 / p50, continuous",),
        tpot_tail,
        lambda found: f"{found['continuous']['tpot_p95'] / found['continuous']['tpot_p50']:.3g}",
    ),
    (
        7,
        "static is worse at the middle and at the tail of TTFT, at every load",
        ("TTFT p50, static / continuous", "TTFT p95, static / continuous"),
        static_is_worse,
        _both(_over("ttft_p50", "static", "continuous"), _over("ttft_p95", "static", "continuous")),
    ),
)
