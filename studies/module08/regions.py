"""Figures that show where the claims hold: over load and chunk size, and over load and step cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from simqueue.results.result import Result
from studies.module08.claims import Holds, Rule, Swept, larger_pays, static_is_worse, tail_not_median, tpot_tail
from studies.module08.maps import BandPanel, Point, VerdictMap, band_figure, verdict_maps
from studies.module08.sweep import CHUNKS, COSTS, H100, POLICIES, linear, loads, rate_at, ratio, run_traffic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOADS: Final = (0.05, 0.2, 0.5, 0.8, 1.2, 2.0, 4.0)
SCALES: Final = (0.1, 0.3, 1.0, 3.0, 10.0)
SECONDS: Final = 10.0
REPLICATIONS: Final = 5
H100_ROW: Final = "H100"
TTFT_BAND: Final = (3.0, 4.0)
TOKENS_BAND: Final = (2.0, 2.6)
_LOAD_LABEL: Final = "load of continuous (offered / capacity)"

CostSweep = Mapping[str, Mapping[float, Result]]
"""Step cost -> load -> result of static and continuous."""
Judged = tuple[str, Holds]


def cost_sweep() -> CostSweep:
    """Return static and continuous at each load, with the module's cost scaled (see `linear`) and with the H100."""
    costs = {f"x {scale:g}": linear(scale) for scale in SCALES} | {H100_ROW: H100.keys}
    policies = {name: POLICIES[name] for name in ("static", "continuous")}
    return {
        name: {
            load: run_traffic(keys, rate_at(keys, load), policies, replications=REPLICATIONS, seconds=SECONDS)
            for load in LOADS
        }
        for name, keys in costs.items()
    }


def region(claim: int, swept: Swept, sweep: CostSweep) -> tuple[Figure, str]:
    """Return the figure that shows where claim 1, 3, 4, 5 or 7 holds, and its caption."""
    by_cost = (
        f"{REPLICATIONS} replications of {SECONDS:g} s. x 0.1 to x 10: the module's cost with all terms but the one "
        f"per prompt token multiplied by this factor. {H100_ROW}: {H100.name}."
    )
    if claim == 1:
        said = "Claimed ranges are bands, and bars are 95 % intervals; an arrow marks a bar that is cut off."
        return static_bands(sweep), f"{said} {by_cost}"
    kinds: Mapping[int, Callable[[], tuple[list[VerdictMap], str]]] = {
        3: lambda: (
            tail_maps(swept),
            "TTFT p95 (above) and p50 (below) of each chunk, divided by those of continuous.",
        ),
        4: lambda: (
            larger_maps(swept),
            "Tokens/s (above) and TTFT p95 (below) of a chunk, divided by those of the smaller chunk.",
        ),
        5: lambda: (tpot_maps(sweep), "TPOT p95 of continuous, divided by its median; the claim holds up to 2.5."),
        7: lambda: (static_maps(sweep), "TTFT p50 (above) and p95 (below) of static, divided by those of continuous."),
    }
    maps, said = kinds[claim]()
    made = by_cost if claim in (5, 7) else "5 replications of 20 s, as in the tables."
    return verdict_maps(maps), f"{said} {_counted(maps)} {made}"


def _counted(maps: Sequence[VerdictMap]) -> str:
    """Return a sentence with the number of cells where a claim holds, and where it is unclear."""
    found = [holds for one in maps for row in one.cells for _, holds in row]
    return f"It holds in {found.count('yes')} of {len(found)} cells, and is unclear in {found.count('unclear')}."


def static_bands(sweep: CostSweep) -> Figure:
    """Return a figure of both parts of claim 1 over the load, by step cost, with the claimed ranges."""
    shown = ("x 0.1", "x 1", "x 10", H100_ROW)

    def lines(metric: str, policy: str, base: str) -> dict[str, list[Point]]:
        return {
            _cost_name(cost): [
                (load, *found) for load, result in sweep[cost].items() if (found := ratio(result, metric, policy, base))
            ]
            for cost in shown
        }

    ttft, tokens = "TTFT p95, static / continuous", "tokens/s, continuous / static"
    return band_figure(
        [
            BandPanel("Tail of TTFT", ttft, lines("p95_ttft_ms", "static", "continuous"), TTFT_BAND),
            BandPanel("Throughput", tokens, lines("output_throughput", "continuous", "static"), TOKENS_BAND),
        ],
        xlabel=_LOAD_LABEL,
        claimed="claimed: 3 to 4 times the TTFT p95, 2.3 (2 to 2.6) times the tokens/s",
    )


def tail_maps(swept: Swept) -> list[VerdictMap]:
    """Return where a chunk improves the tail of TTFT and not its median, over load and chunk size."""
    return _chunk_maps(swept, {str(n): _of_chunk(n) for n in CHUNKS}, "chunk (tokens)")


def larger_maps(swept: Swept) -> list[VerdictMap]:
    """Return where the larger of two chunks has more tokens/s and a worse TTFT p95, over load and chunk size."""
    return _chunk_maps(swept, {f"{a} to {b}": _of_pair(a, b) for a, b in pairwise(CHUNKS)}, "chunk (tokens)")


def tpot_maps(sweep: CostSweep) -> list[VerdictMap]:
    """Return where TPOT p95 of continuous is at most 2.5 times its median, over load and step cost."""
    return _cost_maps(sweep, tpot_tail, "TPOT p95 / median, continuous")


def static_maps(sweep: CostSweep) -> list[VerdictMap]:
    """Return where static has a worse median and tail of TTFT, over load and step cost."""
    return _cost_maps(sweep, static_is_worse, "TTFT of static / continuous: p50 above, p95 below")


def _of_chunk(n: int) -> Rule:
    return lambda result: tail_not_median(result, n)


def _of_pair(small: int, large: int) -> Rule:
    return lambda result: larger_pays(result, small, large)


def _judged(rule: Rule, result: Result) -> Judged:
    """Return a cell: the means, and whether the claim holds. Half-widths are left out; the colour accounts for them."""
    seen, holds = rule(result)
    return "\n".join(part.split(" ±")[0] for part in seen), holds


def _chunk_maps(swept: Swept, rules: Mapping[str, Rule], ylabel: str) -> list[VerdictMap]:
    maps = []
    for cost in COSTS:
        results = [swept[cost.name][rate] for rate in cost.rates_rps]
        columns = [f"{loads(result, ['continuous'])['continuous'] or 0:.2g}" for result in results]
        cells = [[_judged(rule, result) for result in results] for rule in rules.values()]
        maps.append(VerdictMap(cost.name, _LOAD_LABEL, ylabel, columns, list(rules), cells))
    return maps


def _cost_maps(sweep: CostSweep, rule: Rule, title: str) -> list[VerdictMap]:
    columns: Sequence[str] = [f"{load:g}" for load in LOADS]
    cells = [[_judged(rule, result) for result in results.values()] for results in sweep.values()]
    return [VerdictMap(title, _LOAD_LABEL, "step cost", columns, list(sweep), cells)]


def _cost_name(cost: str) -> str:
    return H100.name if cost == H100_ROW else f"the module's cost, all but the prompt term {cost}"
