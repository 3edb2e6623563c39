"""The module's claims about its simulator, each tested at every load of both step costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal

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
    """The test of one claim at one load.

    Attributes
    ----------
    cost : str
    rate_rps : float
    load : float or None
        Offered load of the continuous policy.
    seen : tuple of str
        The results, one per column of the claim.
    holds : {"yes", "no", "unclear"}
        Unclear if an interval contains a limit of the claim.
    """

    cost: str
    rate_rps: float
    load: float | None
    seen: tuple[str, ...]
    holds: Holds


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim and its tests.

    Attributes
    ----------
    number : int
    text : str
        The claim.
    own : str
        Results of the module's own program.
    columns : tuple of str
        Headings of the results.
    against : str
        Runs of the module's own program that contradict the claim; may be empty.
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
        """Text that says where the claim holds."""
        held = [trial for trial in self.trials if trial.holds == "yes"]
        if not held:
            return f"not shown to hold at any load tested{self._unclear()}"
        if len(held) == len(self.trials):
            return "holds at every load tested" + self._against()
        return "holds " + "; ".join(self._where(cost.name) for cost in COSTS) + self._unclear() + self._against()

    def _against(self) -> str:
        return f"; not in {self.against}" if self.against else ""

    def _unclear(self) -> str:
        n = sum(trial.holds == "unclear" for trial in self.trials)
        return f" ({n} of {len(self.trials)} loads are unclear)" if n else ""

    def _where(self, cost: str) -> str:
        own = [trial for trial in self.trials if trial.cost == cost]
        rates = ", ".join(f"{trial.rate_rps:g}" for trial in own if trial.holds == "yes")
        return f"with {cost} at {rates} requests/s" if rates else f"at no load with {cost}"


Rule = Callable[[Result], tuple[tuple[str, ...], Holds]]
"""Tests a claim with one result; returns what came out, and whether the claim holds."""
Runs = Mapping[str, Mapping[str, float]]
"""Results of the module's own program with one clock: policy -> metric -> value."""


@dataclass(frozen=True, slots=True)
class Quotient:
    """A ratio of two results of the module's own program, with its label; a result is a policy and a metric."""

    label: str
    numerator: tuple[str, str]
    denominator: tuple[str, str]

    def of(self, runs: Runs) -> float:
        """Return its value in the results of one clock."""
        (policy, metric), (base, base_metric) = self.numerator, self.denominator
        return runs[policy][metric] / runs[base][base_metric]


_TPOT_TAIL: Final = Quotient("TPOT p95 / p50", ("continuous", "tpot_p95"), ("continuous", "tpot_p50"))


def claims(swept: Swept, own: Mapping[str, Runs]) -> list[Claim]:
    """Return claims 1 to 5 and 7, each tested at every load; 6 is about the bench, 8 about single numbers."""
    found = []
    for statement in _STATEMENTS:
        against = _against(own) if statement.number == 5 else ""
        claim = Claim(statement.number, statement.text, _own(own, statement.own), statement.columns, against)
        for cost, rate, result in _results(swept):
            seen, holds = statement.rule(result)
            load = loads(result, ["continuous"])["continuous"]
            claim.trials.append(Trial(cost.name, rate, load, seen, holds))
        found.append(claim)
    return found


def _results(swept: Swept) -> Iterator[tuple[Cost, float, Result]]:
    for cost in COSTS:
        for rate in cost.rates_rps:
            yield cost, rate, swept[cost.name][rate]


def _own(own: Mapping[str, Runs], quotients: Sequence[Quotient]) -> str:
    return "; ".join(
        f"{clock}: {', '.join(f'{one.label} = {one.of(runs):.3g}' for one in quotients)}" for clock, runs in own.items()
    )


def _against(own: Mapping[str, Runs]) -> str:
    """Return the runs of the module's own program that contradict claim 5, with their ratios."""
    found = {clock: _TPOT_TAIL.of(runs) for clock, runs in own.items()}
    over = [f"{clock}: {tail:.3g}" for clock, tail in found.items() if tail > _LONGEST_TAIL]
    return f"the module's own run ({'; '.join(over)})" if over else ""


def _shown(found: Ratio) -> str:
    if found is None:
        return "-"
    mean, width = found
    return f"{mean:.3g}" if not width else f"{mean:.3g} ±{width:.2g}"


def _within(found: Ratio, low: float, high: float) -> Holds:
    """Return whether a mean with its interval lies between two limits."""
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
    seen, holds = tail_not_median(result, best)
    return (str(best), *seen), holds


def tail_not_median(result: Result, chunk: int) -> tuple[tuple[str, ...], Holds]:
    """Test claim 3 with one chunk: TTFT p95 is below that of continuous, and p50 within 10 % of it."""
    tail, middle = (ratio(result, f"{q}_ttft_ms", f"chunked-{chunk}", "continuous") for q in ("p95", "median"))
    return (_shown(tail), _shown(middle)), _all(_within(tail, 0, 1), _within(middle, 0.9, 1.1))


def _larger_chunks(result: Result) -> tuple[tuple[str, ...], Holds]:
    tokens = [value(result, "output_throughput", f"chunked-{n}") or 0.0 for n in CHUNKS]
    tails = [value(result, "p95_ttft_ms", f"chunked-{n}") or 0.0 for n in CHUNKS]
    seen = (" < ".join(map(str, CHUNKS)), ", ".join(f"{v:,.0f}" for v in tokens), ", ".join(f"{v:,.0f}" for v in tails))
    return seen, _all(*(larger_pays(result, *pair)[1] for pair in pairwise(CHUNKS)))


def larger_pays(result: Result, small: int, large: int) -> tuple[tuple[str, ...], Holds]:
    """Test claim 4 with two chunks: the larger has at least as many tokens/s, and at least the same TTFT p95."""
    tokens, tail = (
        ratio(result, metric, f"chunked-{large}", f"chunked-{small}") for metric in ("output_throughput", "p95_ttft_ms")
    )
    return (_shown(tokens), _shown(tail)), _all(_within(tokens, 1, math.inf), _within(tail, 1, math.inf))


def tpot_tail(result: Result) -> tuple[tuple[str, ...], Holds]:
    """Test claim 5: TPOT p95 of continuous is at most 2.5 times its median."""
    found = spread(result, "p95_tpot_ms", "median_tpot_ms", "continuous")
    return (_shown(found),), _within(found, 0, _LONGEST_TAIL)


def static_is_worse(result: Result) -> tuple[tuple[str, ...], Holds]:
    """Test claim 7: TTFT p50 and p95 of static are at least those of continuous."""
    middle, tail = (ratio(result, f"{q}_ttft_ms", "static", "continuous") for q in ("median", "p95"))
    return (_shown(middle), _shown(tail)), _all(_within(middle, 1, math.inf), _within(tail, 1, math.inf))


@dataclass(frozen=True, slots=True)
class Statement:
    """What a claim says, and how it is tested.

    Attributes
    ----------
    number : int
    text : str
    columns : tuple of str
        Headings of what `rule` returns.
    rule : callable
        Tests the claim with one result.
    own : tuple of Quotient
        Results of the module's own program to show.
    """

    number: int
    text: str
    columns: tuple[str, ...]
    rule: Rule
    own: tuple[Quotient, ...]


def _tail(policy: str, base: str) -> Quotient:
    return Quotient(f"TTFT p95 {policy} / {base}", (policy, "ttft_p95"), (base, "ttft_p95"))


def _median(policy: str, base: str) -> Quotient:
    return Quotient(f"TTFT p50 {policy} / {base}", (policy, "ttft_p50"), (base, "ttft_p50"))


def _tokens(policy: str, base: str) -> Quotient:
    return Quotient(f"tokens/s {policy} / {base}", (policy, "tok_s"), (base, "tok_s"))


_STATEMENTS: Final = (
    Statement(
        1,
        "static has 3 to 4 times the TTFT p95 of continuous and 2.3 times fewer tokens/s",
        ("TTFT p95, static / continuous", "tokens/s, continuous / static"),
        _static,
        (_tail("static", "continuous"), _tokens("continuous", "static")),
    ),
    Statement(
        2,
        "chunks of 8 halve TTFT p95 and cost 1 to 2 % of the throughput; chunks of 32 are in between",
        ("TTFT p95, chunked-8 / continuous", "chunked-32 / continuous", "tokens/s, chunked-8 / continuous"),
        _small_chunks,
        (_tail("chunked-8", "continuous"), _tokens("chunked-8", "continuous")),
    ),
    Statement(
        3,
        "chunking improves the tail of TTFT and not its median",
        ("best chunk", "its TTFT p95 / continuous", "its TTFT p50 / continuous"),
        _tail_only,
        (_tail("chunked-8", "continuous"), _median("chunked-8", "continuous")),
    ),
    Statement(
        4,
        "a larger chunk raises tokens/s and worsens TTFT p95",
        ("chunks", "tokens/s", "TTFT p95 (ms)"),
        _larger_chunks,
        (_tokens("chunked-512", "chunked-8"), _tail("chunked-512", "chunked-8")),
    ),
    Statement(
        5,
        "TPOT p95 of continuous is at most 2 to 2.5 times its median",
        ("TPOT p95 / p50, continuous",),
        tpot_tail,
        (_TPOT_TAIL,),
    ),
    Statement(
        7,
        "static has a worse median and tail of TTFT at every load",
        ("TTFT p50, static / continuous", "TTFT p95, static / continuous"),
        static_is_worse,
        (_median("static", "continuous"), _tail("static", "continuous")),
    ),
)
