"""Where the module's claims hold: over load and chunk from the claims' own runs, over load and cost from a sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from simqueue.module08.claims import Holds, Swept, larger_pays, static_is_worse, tail_not_middle, tpot_tail
from simqueue.module08.sweep import CHUNKS, COSTS, H100, POLICIES, linear, loads, played, rate_at, ratio
from simqueue.report.regions import BandPanel, Point, VerdictMap, band_figure, verdict_maps
from simqueue.results.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOADS: Final = (0.05, 0.2, 0.5, 0.8, 1.2, 2.0, 4.0)
SCALES: Final = (0.1, 0.3, 1.0, 3.0, 10.0)
SECONDS: Final = 15.0
REPLICATIONS: Final = 5
H100_ROW: Final = "H100"
LARGEST_TAIL: Final = 2.5
TTFT_BAND: Final = (3.0, 4.0)
TOKENS_BAND: Final = (2.0, 2.6)
_LOAD_LABEL: Final = "load of continuous (offered over capacity)"

CostSweep = Mapping[str, Mapping[float, Result]]
"""Step cost -> load -> result of static and continuous."""
Judged = tuple[str, Holds]


def cost_sweep() -> CostSweep:
    """Return static and continuous at every load, under the module's cost with its fixed part scaled, and the H100."""
    costs = {f"x {scale:g}": linear(scale) for scale in SCALES} | {H100_ROW: H100.keys}
    policies = {name: POLICIES[name] for name in ("static", "continuous")}
    return {
        name: {
            load: played(keys, rate_at(keys, load), policies, replications=REPLICATIONS, seconds=SECONDS)
            for load in LOADS
        }
        for name, keys in costs.items()
    }


def static_bands(sweep: CostSweep) -> Figure:
    """Return both halves of claim 1 over the load, by step cost, against what is claimed."""
    shown = ("x 0.1", "x 1", "x 10", H100_ROW)

    def lines(metric: str, policy: str, base: str) -> dict[str, list[Point]]:
        return {
            _cost_name(cost): [
                (load, *found) for load, result in sweep[cost].items() if (found := ratio(result, metric, policy, base))
            ]
            for cost in shown
        }

    ttft, tokens = "TTFT p95, static over continuous", "tokens/s, continuous over static"
    return band_figure(
        [
            BandPanel("How much longer the tail waits", ttft, lines("p95_ttft_ms", "static", "continuous"), TTFT_BAND),
            BandPanel(
                "How much less gets done", tokens, lines("output_throughput", "continuous", "static"), TOKENS_BAND
            ),
        ],
        xlabel=_LOAD_LABEL,
        claimed="claimed: 3 to 4 times the TTFT p95, 2.3 (2 to 2.6) times the tokens/s",
    )


def tail_map(swept: Swept) -> Figure:
    """Return where a chunk improves the tail of TTFT and not its middle, over load and chunk."""
    return _chunk_maps(swept, {str(n): _of_chunk(n) for n in CHUNKS}, "chunk (tokens)")


def larger_map(swept: Swept) -> Figure:
    """Return where the larger of two chunks has more tokens/s and a worse TTFT p95, over load and chunk."""
    pairs = list(zip(CHUNKS, CHUNKS[1:], strict=False))
    return _chunk_maps(swept, {f"{a} to {b}": _of_pair(a, b) for a, b in pairs}, "chunk (tokens)")


def tpot_map(sweep: CostSweep) -> Figure:
    """Return where TPOT p95 of continuous is at most 2.5 times its median, over load and cost."""
    return _cost_map(sweep, tpot_tail, "TPOT p95 over its median, continuous")


def static_map(sweep: CostSweep) -> Figure:
    """Return where static is worse at the middle and at the tail of TTFT, over load and cost."""
    return _cost_map(sweep, static_is_worse, "TTFT of static over continuous: p50 above, p95 below")


def _of_chunk(n: int) -> Callable[[Result], tuple[tuple[str, ...], Holds]]:
    return lambda result: tail_not_middle(result, n)


def _of_pair(small: int, large: int) -> Callable[[Result], tuple[tuple[str, ...], Holds]]:
    return lambda result: larger_pays(result, small, large)


def _judged(rule: Callable[[Result], tuple[tuple[str, ...], Holds]], result: Result) -> Judged:
    """Return a cell: the means without their half-widths, which the colour has taken in."""
    seen, holds = rule(result)
    return "\n".join(part.split(" ±")[0] for part in seen), holds


def _chunk_maps(
    swept: Swept, rules: Mapping[str, Callable[[Result], tuple[tuple[str, ...], Holds]]], ylabel: str
) -> Figure:
    maps = []
    for cost in COSTS:
        results = [swept[cost.name][rate] for rate in cost.rates_rps]
        columns = [f"{loads(result, ['continuous'])['continuous'] or 0:.2g}" for result in results]
        cells = [[_judged(rule, result) for result in results] for rule in rules.values()]
        maps.append(VerdictMap(cost.name, _LOAD_LABEL, ylabel, columns, list(rules), cells))
    return verdict_maps(maps)


def _cost_map(sweep: CostSweep, rule: Callable[[Result], tuple[tuple[str, ...], Holds]], title: str) -> Figure:
    columns: Sequence[str] = [f"{load:g}" for load in LOADS]
    cells = [[_judged(rule, result) for result in results.values()] for results in sweep.values()]
    return verdict_maps([VerdictMap(title, _LOAD_LABEL, "step cost", columns, list(sweep), cells)])


def _cost_name(cost: str) -> str:
    return H100.name if cost == H100_ROW else f"the module's cost, its fixed and decode part {cost}"
