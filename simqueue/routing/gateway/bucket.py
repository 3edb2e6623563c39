"""`bucket`: prompts by length, so that each worker gets the same number of characters."""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from simqueue.request import Request
from simqueue.routing.base import Ranking, View, healthy
from simqueue.routing.gateway.front import Front
from simqueue.routing.gateway.policy import Policy
from simqueue.routing.gateway.settings import SglangSettings
from simqueue.routing.gateway.single import exceeds
from simqueue.routing.texts import length_of


class Bucket(Policy):
    """A range of prompt lengths per worker, cut again every few seconds from the prompts in these seconds.

    Until the first cut, the worker registered first holds all lengths. If characters are imbalanced, the worker that
    got the fewest in the period is chosen.
    """

    is_independent = True

    def __init__(self, settings: SglangSettings, random: Random, front: Front) -> None:
        super().__init__(settings, random, front)
        self.keys = settings
        self._recent: deque[tuple[float, int, int]] = deque()
        self._characters: dict[int, int] = {}
        self._bounds: list[int] = []
        self._next_cut_s = float(settings.bucket_adjust_interval_secs)

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the worker of the range, or the one with the fewest characters."""
        self._cut_if_due(len(replicas), now_s)
        able = healthy(replicas)
        counts = {replica.number: self._characters.get(replica.number, 0) for replica in replicas}
        scores = {"characters": {number: float(count) for number, count in counts.items()}}
        high, low = max(counts.values()), min(counts.values())
        holder = replicas[min(bisect.bisect_left(self._bounds, self._length(request)), len(replicas) - 1)]
        balanced = not exceeds(high, low, self.keys.balance_abs_threshold, self.keys.balance_rel_threshold)
        if balanced and holder.healthy:
            return Ranking({holder.number: 1.0}, "range", scores)
        fewest = min(able, key=lambda replica: counts[replica.number])
        return Ranking({fewest.number: 1.0}, "range down" if balanced else "imbalanced", scores)

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Count the characters of the prompt."""
        length = self._length(request)
        self._recent.append((now_s, replica.number, length))
        self._characters[replica.number] = self._characters.get(replica.number, 0) + length

    def left(self, replica: View, now_s: float) -> None:
        """Forget its characters, and all ranges until the next cut."""
        self._characters.pop(replica.number, None)
        self._recent = deque(one for one in self._recent if one[1] != replica.number)
        self._bounds = []

    def joined(self, replica: View, now_s: float) -> None:
        """Forget all ranges until the next cut."""
        self._bounds = []

    def _length(self, request: Request) -> int:
        return length_of(self.front.text(request))

    def _cut_if_due(self, workers: int, now_s: float) -> None:
        if now_s < self._next_cut_s:
            return
        period_s = self.keys.bucket_adjust_interval_secs
        cut_s = now_s // period_s * period_s
        self._next_cut_s = cut_s + period_s
        while self._recent and self._recent[0][0] < cut_s - period_s:
            _, number, length = self._recent.popleft()
            self._characters[number] -= length
        if self._recent:
            self._bounds = equal_shares([length for _, _, length in self._recent], workers)


def equal_shares(lengths: Sequence[int], workers: int) -> list[int]:
    """Return the longest prompt of each worker but the last, such that their prompts have the same length in total."""
    ordered = sorted(lengths)
    sums = list(accumulate(ordered))
    places = [bisect.bisect_left(sums, sums[-1] * part / workers) for part in range(1, workers)]
    return [ordered[place] for place in places]
