"""The endpoint picker of llm-d: filters, then a weighted sum of scores, then a picker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from simqueue.request import Request
from simqueue.routing.base import Age, AnySettings, Choice, Ranking, Recovery, Router, Signal, View, evenly, healthy
from simqueue.routing.blocks import Blocks, Key
from simqueue.routing.llmd import saturation
from simqueue.routing.llmd.keys import AffinityFilter, LlmDSettings
from simqueue.routing.llmd.scorers import BY_NAME, Seen
from simqueue.routing.lru import LruPerReplica

FULL = "all are full"
_REFRESH = Age(every_s=0.05)


class LlmD(Router):
    """llm-d's endpoint picker."""

    Settings = LlmDSettings
    settings: LlmDSettings
    summary: ClassVar[str] = "llm-d: a weighted sum of scores by queue, KV pool, cached prefix and more"
    checked: ClassVar[str] = "source of v0.8.0"
    recovery: ClassVar[Recovery] = Recovery(retries=0, source="llm-d: none of its own")
    ages: ClassVar[Mapping[Signal, Age]] = dict.fromkeys((Signal.WAITING, Signal.RUNNING, Signal.KV_USED), _REFRESH)

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self._blocks = Blocks()
        self._index = LruPerReplica()
        self._cold: dict[int, None] = {}
        self._block_tokens = self.settings.prefix.block_size_tokens
        self._was_cold = False

    @property
    def reads(self) -> frozenset[Signal]:
        """The signals of the scorers and of the detector, which counts if it can refuse or hold a request."""
        found = saturation.reads(self.settings.saturation_detector)
        return found.union(*(BY_NAME[name].reads for name in self.settings.scorers))

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the chances by the sum of scores; none if the fleet is full and the request must not be sent then."""
        able = healthy(replicas)
        seen = self._seen(request, replicas)
        self._was_cold = not any(seen.matched.get(one.number) for one in able)
        if self.settings.flow_control or request.priority > 0:
            full = saturation.saturation(able, self.settings.saturation_detector, now_s)
            if full >= 1:
                return Ranking({}, FULL, {"saturation": {one.number: full for one in able}})
        chances: dict[int, float] = {}
        scores: dict[str, Mapping[int, float]] = {}
        for share, kept in _filtered(able, seen, self.settings.affinity_filter):
            of_kept, picked = self._scored(kept, seen)
            scores = scores or of_kept
            for number, chance in picked.items():
                chances[number] = chances.get(number, 0.0) + share * chance
        return Ranking(chances, self.settings.picker.removesuffix("-picker"), scores)

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Draw a replica; without flow control a request waits for nothing, and is refused."""
        choice = super().choose(request, replicas, now_s)
        return choice._replace(refused=choice.replica is None and not self.settings.flow_control)

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Add the prompt to the index of the replica."""
        prefix = self.settings.prefix
        tuned = replica.kv_tokens // replica.block_size if prefix.auto_tune else 0
        self._index.add(self._keys(request), replica.number, tuned or prefix.lru_capacity_per_server)
        if self._was_cold and "no-hit-lru-scorer" in self.settings.scorers:
            self._cold.pop(replica.number, None)
            self._cold[replica.number] = None

    def joined(self, replica: View, now_s: float) -> None:
        """Start with nothing known of it."""
        self._index.drop(replica.number)
        self._cold.pop(replica.number, None)

    def left(self, replica: View, now_s: float) -> None:
        """Forget it."""
        self.joined(replica, now_s)

    def _seen(self, request: Request, replicas: Sequence[View]) -> Seen:
        if self.settings.prefix.auto_tune:
            self._block_tokens = replicas[0].block_size
        keys = self._keys(request)
        return Seen(self._index.counted(keys), len(keys), tuple(self._cold), self.settings)

    def _keys(self, request: Request) -> tuple[Key, ...]:
        """Return the blocks of a prompt; one that is shorter than a block has none."""
        if request.prompt_tokens < self._block_tokens:
            return ()
        most = self.settings.prefix.max_prefix_blocks_to_match
        return self._blocks.of(request, self._block_tokens, most, with_rest=True)

    def _scored(self, kept: Sequence[View], seen: Seen) -> tuple[dict[str, Mapping[int, float]], dict[int, float]]:
        """Return the scores of the candidates by scorer, their sum, and the picker's chances."""
        scores: dict[str, Mapping[int, float]] = {}
        sums = {one.number: 0.0 for one in kept}
        for name, weight in self.settings.scorers.items():
            scores[name] = BY_NAME[name].of(kept, seen)
            for number, score in scores[name].items():  # between 0 and 1, so that there is nothing to clamp
                sums[number] += weight * score
        scores["sum"] = sums
        return scores, _picked(kept, sums, self.settings.picker)


def _filtered(able: list[View], seen: Seen, keys: AffinityFilter | None) -> list[tuple[float, list[View]]]:
    """Return which candidates are kept, with which probability."""
    if keys is None or len(able) == 1 or keys.affinity_threshold == 0:
        return [(1.0, able)]
    share = {one.number: seen.matched.get(one.number, 0) / seen.blocks if seen.blocks else 0.0 for one in able}
    sticky = [one for one in able if share[one.number] >= keys.affinity_threshold]
    others = [one for one in able if share[one.number] < keys.affinity_threshold]
    if not sticky or not others or _is_overloaded(sticky, others, keys.max_tokens_in_flight_penalty):
        return [(1.0, able)]
    explored = keys.exploration_probability
    return [(chance, kept) for chance, kept in ((1 - explored, sticky), (explored, able)) if chance > 0]


def _is_overloaded(sticky: list[View], others: list[View], penalty: int) -> bool:
    if not penalty:
        return False
    return min(one.in_flight_tokens for one in sticky) - min(one.in_flight_tokens for one in others) > penalty


def _picked(kept: Sequence[View], sums: Mapping[int, float], picker: str) -> dict[int, float]:
    total = sum(sums.values())
    if picker == "random-picker" or (picker == "weighted-random-picker" and total == 0):
        return evenly(kept)
    if picker == "weighted-random-picker":
        return {number: score / total for number, score in sums.items() if score > 0}
    highest = max(sums.values())
    return evenly([one for one in kept if sums[one.number] == highest])
