"""`bucket`: prompts by length, so that each worker gets the same number of characters.

Source: sglang, ``sgl-model-gateway/src/policies/bucket.rs`` (commit 092fb045).
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Sequence
from random import Random

from simqueue.request import Request
from simqueue.routing.base import Ranking, View, healthy
from simqueue.routing.gateway.front import Front
from simqueue.routing.gateway.policy import Policy
from simqueue.routing.gateway.settings import SglangSettings
from simqueue.routing.gateway.single import exceeds
from simqueue.routing.texts import length_of


class Bucket(Policy):
    """A range of prompt lengths per worker, cut again every few seconds from the last prompts.

    Until the first cut, and again after a worker joined or left, the first worker holds all lengths. If characters are
    imbalanced, the worker that got the fewest in the period is chosen.
    """

    is_independent = True

    def __init__(self, settings: SglangSettings, random: Random, front: Front) -> None:
        super().__init__(settings, random, front)
        self.keys = settings
        self._workers: tuple[int, ...] = ()
        self._recent: deque[tuple[float, int, int]] = deque()
        self._characters: dict[int, int] = {}
        self._bounds: list[int] = []
        self._share = 0
        self._next_cut_s = float(settings.bucket_adjust_interval_secs)

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the worker of the range, or the one with the fewest characters."""
        self._see(replicas)
        self._cut_if_due(now_s)
        counts = {replica.number: self._characters.get(replica.number, 0) for replica in replicas}
        scores = {"characters": {number: float(count) for number, count in counts.items()}}
        high, low = max(counts.values()), min(counts.values())
        holder = replicas[bisect.bisect_left(self._bounds, self._length(request))]
        balanced = not exceeds(high, low, self.keys.balance_abs_threshold, self.keys.balance_rel_threshold)
        if balanced and holder.healthy:
            return Ranking({holder.number: 1.0}, "range", scores)
        fewest = min(healthy(replicas), key=lambda replica: counts[replica.number])
        return Ranking({fewest.number: 1.0}, "range down" if balanced else "imbalanced", scores)

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Count the characters of the prompt, and forget those from before the period."""
        length = self._length(request)
        self._characters[replica.number] = self._characters.get(replica.number, 0) + length
        while self._recent and now_s - self._recent[0][0] > self.keys.bucket_adjust_interval_secs:
            _, number, gone = self._recent.popleft()
            self._characters[number] = max(0, self._characters.get(number, 0) - gone)
        self._recent.append((now_s, replica.number, length))

    def _length(self, request: Request) -> int:
        return length_of(self.front.text(request))

    def _see(self, replicas: Sequence[View]) -> None:
        """Begin again if the workers are others than before; the prompts for the next cut stay."""
        numbers = tuple(sorted([replica.number for replica in replicas]))
        if numbers != self._workers:
            self._workers = numbers
            self._characters = {}
            self._bounds = []

    def _cut_if_due(self, now_s: float) -> None:
        if now_s < self._next_cut_s:
            return
        self._next_cut_s = (now_s // self.keys.bucket_adjust_interval_secs + 1) * self.keys.bucket_adjust_interval_secs
        lengths = [length for _, _, length in self._recent]
        share = sum(lengths) // len(self._workers)
        if lengths and not _alike(share, self._share):
            self._share = share
            self._bounds = bounds_of(lengths, share, len(self._workers))


def _alike(share: int, before: int) -> bool:
    """Return whether a cut is not worth it: the characters per worker have at most doubled or halved."""
    return before > 0 and share <= 2 * before and before <= 2 * share


def bounds_of(lengths: Sequence[int], share: int, workers: int) -> list[int]:
    """Return the longest prompt of each worker but the last.

    A range ends with the prompt that fills the share of its worker. If that prompt belongs to a range before, or if
    there is none, the range is as wide as the share.
    """
    ordered = deque(sorted(lengths))
    bounds: list[int] = []
    low = 0
    for _ in range(workers - 1):
        filled = last = 0
        while ordered and filled < share:
            last = ordered.popleft()
            filled += last
        bounds.append(last if filled >= share and last > low else low + share)
        low = bounds[-1] + 1
    return bounds
