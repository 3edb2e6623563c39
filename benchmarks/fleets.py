"""Fleets: the traffic of W1 for each replica, behind routers of every kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from benchmarks import traffic
from benchmarks.cells import STEP_TIME, Cell, Traffic, cells
from simqueue.routing import ROUTERS
from simqueue.simulation.columns import Sinks
from simqueue.simulation.fleet_rules import FleetRules, Part
from simqueue.simulation.simulate_fleet import FleetSimulation
from simqueue.traffic import RequestStream
from simqueue.traffic import Traffic as OfferedTraffic

SIZES: Final = (1, 8, 64, 256)
PREFIXES: Final = 100
"""Of the whole fleet, so that each is known somewhere."""
KINDS: Final[Mapping[str, str]] = {
    "round_robin": "independent",
    "least_outstanding": "own counts",
    "power_of_two": "two own counts",
    "join_shortest_queue": "live signals",
    "llm-d": "signals of 50 ms",
    "sglang-router": "tree of texts",
    "dynamo": "live caches",
}
"""Router -> what it looks at."""
BY_PREFIX: Final = ("sglang-router", "dynamo")
"""Routers whose requests have known tokens, and whose replicas cache prefixes."""
ONE, ONE_CACHED = "W1, one replica", "W1, one replica, shared prefixes"


@dataclass(frozen=True)
class FleetCell(Cell):
    """The same replica several times behind a router.

    Attributes
    ----------
    replicas : int
    router : str
        A key of `KINDS`.
    keys_of_router : dict
    """

    replicas: int = 1
    router: str = "round_robin"
    keys_of_router: dict[str, Any] = field(default_factory=dict)

    def simulation(self, requests: RequestStream, sinks: Sinks | None = None) -> FleetSimulation:
        """Return the run that is measured."""
        kind = ROUTERS[self.router]
        router = kind(kind.Settings.model_validate(self.keys_of_router), Random(traffic.SEED))
        rules = FleetRules(router=router, random=Random, ages=kind.ages, recovery=kind.recovery)
        parts = [Part(f"r-{i}", "r", 1.0, self.policy, STEP_TIME) for i in range(self.replicas)]
        return FleetSimulation(OfferedTraffic(requests), parts, rules, self.options(), sinks=sinks)


def all_cells(*, quick: bool) -> list[Cell]:
    """Return all cells that are measured, by number."""
    return [*cells(quick=quick), *fleet_cells(quick=quick)]


def fleet_cells(*, quick: bool) -> list[Cell]:
    """Return one replica without a router, and fleets of each size behind each router."""
    each = 100 if quick else 400
    alone = 2_000 if quick else 10_000
    return [
        Cell(ONE, _requests(alone, 1, prefixes=0)),
        Cell(ONE_CACHED, _requests(alone, 1, prefixes=PREFIXES), prefix_caching=True),
        *(_cell(router, replicas, max(alone, each * replicas)) for router in KINDS for replicas in SIZES),
    ]


def _cell(router: str, replicas: int, requests: int) -> FleetCell:
    cached = router in BY_PREFIX
    made = _requests(requests, replicas, prefixes=PREFIXES if cached else 0)
    return FleetCell(name(router, replicas), made, prefix_caching=cached, replicas=replicas, router=router)


def name(router: str, replicas: int) -> str:
    """Return the name of a cell."""
    return f"W1 x {replicas}, {router}"


def _requests(n: int, replicas: int, prefixes: int) -> Traffic:
    return lambda rate_rps: list(traffic.Poisson(n, replicas * rate_rps, prefixes=prefixes))
