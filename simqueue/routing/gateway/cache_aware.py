"""`cache_aware`: the worker that has the longest beginning of the text, unless loads are imbalanced.

Source, beside recordings: vllm-router, ``src/tree.rs`` (commit 1dbe5075), for an owner that lost its text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from simqueue.request import Request
from simqueue.routing.base import Choice, Ranking, View, drawn, healthy
from simqueue.routing.gateway.front import Front
from simqueue.routing.gateway.policy import Policy, is_healthy, least_loaded, loads, lowest
from simqueue.routing.gateway.rules import Rules
from simqueue.routing.gateway.settings import CacheAwareSettings
from simqueue.routing.gateway.single import exceeds, ratio, single
from simqueue.routing.prefixtree import Match, PrefixTree
from simqueue.routing.texts import Text, divided, length_of


class Decision(NamedTuple):
    """What is decided for a request.

    Attributes
    ----------
    meant : dict of int to float
        The workers that the rule names and their probabilities, whether they are healthy or not.
    reason : str
    match : Match or None
        What the tree knows of the text; None: it was not asked.
    down : int or None
        The first of them that is not healthy.
    """

    meant: Mapping[int, float]
    reason: str
    match: Match | None = None
    down: int | None = None


class CacheAware(Policy):
    """One tree of texts, with the workers that they were sent to.

    Parameters
    ----------
    settings, random, front
        See `Policy`.
    rules : Rules
        What differs between versions.
    """

    def __init__(self, settings: CacheAwareSettings, random: Random, front: Front, rules: Rules) -> None:
        super().__init__(settings, random, front)
        self.keys = settings
        self.rules = rules
        self.tree = PrefixTree(front.alphabet)
        self._purged: dict[int, None] = {}
        self._next_eviction_s = settings.eviction_interval_secs or math.inf
        self._threshold = single(settings.cache_threshold)
        self._last: tuple[str, Decision] | None = None

    # -- questions -----------------------------------------------------------------------------------------------

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the workers that the rule names, or the first healthy one in the place of one that is not."""
        chances, decision = self._chances(request, replicas, now_s)
        scores = {"in_flight": loads(replicas), "characters": self._characters(replicas)}
        return Ranking(chances, decision.reason, scores)

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Return one of them."""
        chances, decision = self._chances(request, replicas, now_s)
        return Choice(drawn(self.random, chances), decision.reason)

    def _chances(
        self, request: Request, replicas: Sequence[View], now_s: float
    ) -> tuple[Mapping[int, float], Decision]:
        self._evict_if_due(now_s)
        decision = self._decide(request, replicas)
        down = [number for number in decision.meant if not is_healthy(replicas, number)]
        if down:
            decision = decision._replace(down=down[0])
        self._last = (request.request_id, decision)
        if decision.meant and not down:
            return decision.meant, decision
        first = next(replica.number for replica in replicas if replica.healthy)
        chances: dict[int, float] = {}
        for number, chance in (decision.meant or {first: 1.0}).items():
            target = first if number in down else number
            chances[target] = chances.get(target, 0.0) + chance
        return chances, decision

    def _decide(self, request: Request, replicas: Sequence[View]) -> Decision:
        able = healthy(replicas)  # a worker that is down is as if it were not there, with its load
        in_flight = [replica.in_flight for replica in able]
        keys = self.keys
        if exceeds(max(in_flight), min(in_flight), keys.balance_abs_threshold, keys.balance_rel_threshold):
            return Decision(_least(able, in_flight), "imbalanced")
        text = self.front.text(request)
        match = self._find(text)
        units = self.front.units
        if ratio(units(match.matched), units(length_of(text))) > self._threshold:
            meant = self._owner(match, able)
            if meant:
                return Decision(meant, "hit", match)
        if self.rules.miss == "least loaded":
            return Decision(_least(able, in_flight), "miss", match)
        return Decision(self._smallest(replicas), "miss", match)

    def _find(self, text: Text) -> Match:
        match = self.tree.find(text)
        whole = self.front.whole(match.matched)
        return match if whole == match.matched else self.tree.find(divided(text, whole)[0])

    def _owner(self, match: Match, able: Sequence[View]) -> dict[int, float]:
        owners = match.owners
        if self.rules.owner == "creator" and match.node.creator in match.node.last_use:
            return {match.node.creator: 1.0}
        if self.rules.owner == "least loaded":
            having = [replica for replica in able if replica.number in match.node.last_use]
            return {least_loaded(having).number: 1.0} if having else {}
        return dict.fromkeys(owners, 1 / len(owners))

    def _smallest(self, replicas: Sequence[View]) -> dict[int, float]:
        known = [replica for replica in replicas if replica.number not in self._purged]
        smallest = lowest(known, lambda replica: self.tree.sizes.get(replica.number, 0)) if known else []
        return {replica.number: 1 / len(smallest) for replica in smallest}

    def _characters(self, replicas: Sequence[View]) -> dict[int, float]:
        return {replica.number: float(self.tree.sizes.get(replica.number, 0)) for replica in replicas}

    # -- what happens --------------------------------------------------------------------------------------------

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Insert the text for the worker, unless it only took the place of an unhealthy one."""
        decided = self._last
        self._last = None
        if decided is None or decided[0] != request.request_id:  # chosen by another rule, as in a comparison
            self._insert(request, replica.number)
            return
        decision, number = decided[1], replica.number
        if self.rules.look_up_is_use and decision.match is not None:
            self._use(decision.match, number)
        if number not in decision.meant and (decision.down is not None or not decision.meant):
            self._purge(decision.down)
        elif decision.match is not None or self.rules.inserts_imbalanced:
            if decision.reason == "hit" and decision.match is not None:
                decision.match.node.replace_creator(number)
            self._insert(request, number)

    def left(self, replica: View, now_s: float) -> None:
        """Take it out of the tree."""
        self.tree.remove(replica.number)
        self._purged.pop(replica.number, None)

    def evict(self) -> None:
        """Make one pass of eviction, which otherwise happens by itself."""
        self.tree.evict(self.keys.max_tree_size)

    def _insert(self, request: Request, number: int) -> None:
        self._purged.pop(number, None)
        self.tree.insert(self.front.text(request), number)

    def _use(self, match: Match, number: int) -> None:
        """Count the look-up for the worker chosen if it is an owner; which other one it would be is arbitrary."""
        owners = match.owners
        if owners:
            self.tree.touch(match, number if number in match.node.last_use else owners[0])

    def _purge(self, number: int | None) -> None:
        if number is not None:
            self.tree.remove(number)
            self._purged[number] = None

    def _evict_if_due(self, now_s: float) -> None:
        """Make the pass that was due since the last decision; several would do the same as one."""
        if now_s >= self._next_eviction_s:
            interval_s = self.keys.eviction_interval_secs
            self._next_eviction_s = (now_s // interval_s + 1) * interval_s
            self.evict()


def _least(able: Sequence[View], in_flight: Sequence[int]) -> dict[int, float]:
    """Return the first worker with the fewest requests in flight."""
    return {able[in_flight.index(min(in_flight))].number: 1.0}
