"""RING_HASH and MAGLEV: the replica of a session by a table over the healthy ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Ranking, Router, View, healthy
from simqueue.routing.envoy.keys import EnvoySettings
from simqueue.routing.envoy.tables import MaglevTable, RingTable
from simqueue.routing.ring import hashed

Table = RingTable | MaglevTable
_KEPT = 8
"""Tables that are kept: replicas that fail and come back bring back a table that was there before."""


class ByHash(Router):
    """The replica of a session; a request without one gets a random hash."""

    settings: EnvoySettings
    is_independent = True

    def __init__(
        self,
        settings: AnySettings,
        random: Random,
        table_of: Callable[[Mapping[int, float], Mapping[int, str], EnvoySettings], Table],
    ) -> None:
        super().__init__(settings, random)
        self._table_of = table_of
        self._tables: dict[tuple[int, ...], tuple[Table, dict[int, float]]] = {}

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the one of the session, or the shares of the table."""
        table, shares = self._table(healthy(replicas))
        if request.session is None:
            return Ranking(shares, "no session")
        return Ranking({table.of(hashed(request.session)): 1.0}, "session")

    def _table(self, able: Sequence[View]) -> tuple[Table, dict[int, float]]:
        """Return the table of these replicas: it follows from them alone."""
        numbers = tuple([one.number for one in able])
        if numbers not in self._tables:
            weights = {one.number: one.weight for one in able}
            table = self._table_of(weights, {one.number: one.name for one in able}, self.settings)
            while len(self._tables) >= _KEPT:
                del self._tables[next(iter(self._tables))]
            self._tables[numbers] = (table, table.shares())
        return self._tables[numbers]


def ring(weights: Mapping[int, float], names: Mapping[int, str], settings: EnvoySettings) -> Table:
    """Return a ring of the sizes that the settings say."""
    return RingTable(weights, names, settings.minimum_ring_size, settings.maximum_ring_size)


def maglev(weights: Mapping[int, float], names: Mapping[int, str], settings: EnvoySettings) -> Table:
    """Return a table of the size that the settings say."""
    return MaglevTable(weights, names, settings.table_size)
