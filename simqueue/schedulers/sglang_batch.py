"""The decode batch of SGLang: its requests in order, and counters over all of them.

Every decode step gives each request of the batch one token. So a request stores its numbers less two counters once:
steps that have been planned (its KV grows with them) and steps whose tokens have been delivered. It is then not touched
until it leaves. So a step costs the same whatever the batch, and so do the sums that an attempt at a prefill asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

from mypy_extensions import mypyc_attr

from simqueue.errors import RunError
from simqueue.schedulers.sglang_entry import CLIP_TOKENS, NEVER, Entry, left_of


class Reserve:
    """The sum of ``min(max_new - generated, CLIP_TOKENS)`` over some requests of a batch."""

    def __init__(self) -> None:
        self.count = 0
        self._sum = 0
        self._clipped = 0
        self._later: list[tuple[int, int, Entry]] = []
        self._serial = 0

    def add(self, entry: Entry, delivered: int) -> None:
        """Count a request that gets a token with each step delivered from now on."""
        left_at = entry.max_new - entry.base
        entry.clipped = left_at - delivered > CLIP_TOKENS
        if entry.clipped:
            self._clipped += 1
            self._serial += 1
            heappush(self._later, (left_at - CLIP_TOKENS, self._serial, entry))
        else:
            self.count += 1
            self._sum += left_at

    def remove(self, entry: Entry) -> None:
        """Stop counting a request."""
        if entry.clipped:
            self._clipped -= 1
            entry.clipped = False
        else:
            self.count -= 1
            self._sum -= entry.max_new - entry.base

    def total(self, delivered: int) -> int:
        """Return the sum, now that `delivered` steps have been delivered."""
        while self._later and self._later[0][0] <= delivered:
            at, _, entry = heappop(self._later)
            if entry.clipped and entry.max_new - entry.base - CLIP_TOKENS == at:
                entry.clipped = False
                self._clipped -= 1
                self.count += 1
                self._sum += entry.max_new - entry.base
        return self._sum - self.count * delivered + self._clipped * CLIP_TOKENS


@mypyc_attr(allow_interpreted_subclasses=True)
class DecodeBatch:
    """The requests that decode together.

    Parameters
    ----------
    page : int
        Tokens in a page.

    Attributes
    ----------
    entries : dict of Entry to None
        All requests, those that have finished and are still in the batch included.
    live : int
        Those of them that have not finished.
    planned, delivered : int
        Steps planned, and delivered.
    seen, mixed_at : int
        `delivered` when the last step was planned, and when the last mixed one was.
    leftover : int
        Tokens of the prefill that the batch began with.
    gone : list of Entry
        Requests that have finished and are still in the batch.
    """

    def __init__(self, page: int) -> None:
        self.entries: dict[Entry, None] = {}
        self.live = 0
        self.planned = self.delivered = self.seen = self.leftover = 0
        self.mixed_at = -NEVER
        self.gone: list[Entry] = []
        self._page = page
        self._low = self._high = 0
        self._kv_sum = 0
        self._by_offset = [0] * page
        self._by_known = [0] * page
        self._scaled, self._fixed = Reserve(), Reserve()
        self._gone_scaled = self._gone_fixed = 0
        self._ends: list[tuple[int, int, Entry]] = []
        self._serial = 0

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        """All requests, in the order of the batch."""
        return iter(sorted(self.entries, key=lambda entry: entry.rank))

    # -- who is in it --------------------------------------------------------------------------------------------

    def append(self, entry: Entry) -> None:
        """Let a request decode with the batch, as its last one."""
        entry.rank = self._high
        self._high += 1
        self._join(entry)

    def put_first(self, entries: list[Entry], under_way: int) -> None:
        """Let requests decode with the batch, before all others, in their order.

        They take no part in the next `under_way` steps that are delivered.
        """
        self._low -= len(entries)
        for offset, entry in enumerate(entries):
            entry.rank = self._low + offset
            self._join(entry, under_way)

    def _join(self, entry: Entry, under_way: int = 0) -> None:
        self.entries[entry] = None
        if entry.finished:
            self._keep_finished(entry)
            return
        entry.base = entry.generated - self.delivered - under_way
        entry.kv_base = entry.holding.length - self.planned
        entry.batch = self
        self._count(entry)

    def remove(self, entry: Entry) -> None:
        """Let a request that has not finished leave."""
        self._stop(entry)
        del self.entries[entry]

    def sort(self, entries: list[Entry]) -> None:
        """Give the batch another order. Precondition: these are its requests."""
        for rank, entry in enumerate(entries):
            entry.rank = rank
        self._low, self._high = 0, len(entries)
        self.entries = dict.fromkeys(entries)

    def first_token(self, entry: Entry) -> None:
        """Deliver the token of a prefill to a request that joined before it was known."""
        self._uncount(entry)
        entry.base += 1
        self._count(entry)

    def finish(self, entry: Entry) -> None:
        """Let a request make no more tokens; it stays in the batch until `filter`."""
        self._stop(entry)
        entry.finished = True
        self._keep_finished(entry)

    def _keep_finished(self, entry: Entry) -> None:
        entry.batch = self
        self.gone.append(entry)
        kept = min(entry.max_new - entry.generated, CLIP_TOKENS)
        if entry.ignores_eos:
            self._gone_fixed += kept
        else:
            self._gone_scaled += kept

    def filter(self) -> bool:
        """Take finished requests out; return whether there were any."""
        if not self.gone:
            return False
        for entry in self.gone:
            entry.batch = None
            del self.entries[entry]
        self.gone.clear()
        self._gone_scaled = self._gone_fixed = 0
        return True

    def _stop(self, entry: Entry) -> None:
        entry.fill = max(entry.fill, entry.prompt + entry.base + self.mixed_at)
        entry.generated = entry.base + self.delivered
        entry.holding.length = entry.kv_base + self.planned
        self._uncount(entry)
        entry.batch = None

    # -- counters ------------------------------------------------------------------------------------------------

    def _count(self, entry: Entry) -> None:
        self.live += 1
        self._kv_sum += entry.kv_base
        (self._fixed if entry.ignores_eos else self._scaled).add(entry, self.delivered)
        entry.ends_at = entry.target - entry.base
        self._serial += 1
        heappush(self._ends, (entry.ends_at, self._serial, entry))
        if self._page > 1:
            self._by_offset[-entry.kv_base % self._page] += 1
            self._by_known[-(entry.prompt + entry.base) % self._page] += 1

    def _uncount(self, entry: Entry) -> None:
        self.live -= 1
        self._kv_sum -= entry.kv_base
        (self._fixed if entry.ignores_eos else self._scaled).remove(entry)
        entry.ends_at = NEVER
        if self._page > 1:
            self._by_offset[-entry.kv_base % self._page] -= 1
            self._by_known[-(entry.prompt + entry.base) % self._page] -= 1
        if not self.live:
            self._ends.clear()
        elif len(self._ends) > 2 * self.live + 64:
            self._ends = [end for end in self._ends if end[2].batch is self and end[2].ends_at == end[0]]
            heapify(self._ends)

    @property
    def context_tokens(self) -> int:
        """Tokens in the cache of all requests that have not finished."""
        return self._kv_sum + self.live * self.planned

    @property
    def next_end(self) -> int:
        """The number of the step whose delivery finishes the next request."""
        ends = self._ends
        while ends:
            at, _, entry = ends[0]
            if entry.batch is self and entry.ends_at == at:
                return at
            heappop(ends)
        return NEVER

    def reserved(self) -> tuple[int, int]:
        """Return the reserves of the requests whose end is open, and of those that ignore the end-of-sequence token."""
        scaled = self._scaled.total(self.delivered) + self._gone_scaled
        return scaled, self._fixed.total(self.delivered) + self._gone_fixed

    def new_pages(self, ahead: int = 0) -> int:
        """Return how many pages a step needs, `ahead` steps after the next one."""
        return self._by_offset[(self.planned + ahead) % self._page] if self._page > 1 else self.live

    def pages_by_known(self, shift: int) -> int:
        """Return how many pages the next step seems to need, by the tokens that are known, less `shift`."""
        return self._by_known[(self.delivered - shift) % self._page] if self._page > 1 else self.live

    def pages_of(self, steps: int) -> int:
        """Return how many pages the next `steps` steps need together."""
        if self._page == 1:
            return steps * self.live
        rounds, rest = divmod(steps, self._page)
        return rounds * self.live + sum([self.new_pages(step) for step in range(rest)])

    def steps_within(self, pages: int, limit: int) -> int:
        """Return for how many of the next `limit` steps `pages` pages are enough."""
        if self._page == 1:
            return min(limit, pages // self.live)
        if self.pages_of(limit) <= pages:
            return limit
        rounds = pages // self.live
        pages -= rounds * self.live
        steps = rounds * self._page
        while (need := self.new_pages(steps)) <= pages:
            pages -= need
            steps += 1
        return steps

    def ending(self, at: int) -> list[Entry]:
        """Return the requests that make their last token with step `at`, if that is the next to be delivered."""
        found: dict[Entry, None] = {}  # one that left and came back can be noted twice
        while self._ends and self._ends[0][0] <= at:
            ends_at, _, entry = heappop(self._ends)
            if entry.batch is self and entry.ends_at == ends_at:
                found[entry] = None
        for entry in found:
            self._serial += 1
            heappush(self._ends, (entry.ends_at, self._serial, entry))
        return list(found)

    def deliver(self, steps: int) -> list[Entry]:
        """Deliver the tokens of `steps` steps; return the requests that have made all of theirs, in order."""
        self.delivered += steps
        ended = []
        ends = self._ends
        while ends and ends[0][0] <= self.delivered:
            at, _, entry = heappop(ends)
            if entry.batch is self and entry.ends_at == at:
                entry.ends_at = NEVER  # one that left and came back can be noted twice
                ended.append(entry)
        ended.sort(key=lambda entry: entry.rank)
        return ended

    def check(self) -> None:
        """Compare the counters with sums over all requests; raise `RunError` if they differ."""
        live = [entry for entry in self.entries if not entry.finished]
        kv_sum = sum(entry.kv_base for entry in live)
        counted = self.live, self._kv_sum, sum(self.reserved()), len(self.entries)
        summed = len(live), kv_sum, sum(map(left_of, self.entries)), len(live) + len(self.gone)
        if counted != summed:
            raise RunError(f"decode batch: counters {counted} differ from {summed}")
        if self._page > 1 and self.new_pages() != sum(entry.kv_tokens % self._page == 0 for entry in live):
            raise RunError(f"decode batch: counts {self.new_pages()} new pages for the next step")


def total_left(entries: Iterable[Entry], ratio: float, *, fixed: bool) -> float:
    """Return the sum of the reserves as the engine adds them up, one after the other."""
    total = 0.0
    for entry in entries:
        total += left_of(entry) * (1.0 if fixed and entry.ignores_eos else ratio)
    return total
