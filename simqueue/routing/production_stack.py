"""The router of vLLM's production-stack: roundrobin, session, prefixaware and kvaware."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from random import Random
from typing import ClassVar, Final, Literal

from pydantic import Field

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Ranking, Recovery, Router, Signal, View, evenly, healthy
from simqueue.routing.blocks import Blocks, Key
from simqueue.routing.ring import Ring
from simqueue.routing.several import Several
from simqueue.settings import Count, Settings

_WINDOW_S: Final = 60.0
_CHUNK_CHARS: Final = 128
_POINTS: Final = 160


class ProductionStackSettings(Settings):
    """Keys of `ProductionStack`."""

    routing_logic: Literal["roundrobin", "session", "prefixaware", "kvaware"] = Field(
        "roundrobin",
        description="roundrobin: in turn; session: by consistent hashing of the session; prefixaware: by prompts sent "
        "before; kvaware: by what the caches have",
    )
    prefix_min_match_length: Count = Field(
        0, ge=0, description="prefixaware: characters below which a match does not count"
    )
    kv_aware_threshold: Count = Field(
        2000, ge=0, description="kvaware: tokens that a cache may lack of a prompt and is used still"
    )
    chars_per_token: Count = Field(
        4,
        ge=1,
        le=128,
        description="characters of a token; chunks of 128 characters have whole tokens in the simulation",
    )


class RoundRobinByName(Router):
    """The healthy replicas in turn, in the order of their names; the counter goes on whatever happens."""

    is_independent = True
    _turn = 0

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the one whose turn it is."""
        able = sorted(healthy(replicas), key=lambda one: one.name)
        return Ranking({able[self._turn % len(able)].number: 1.0}, "turn")

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Go on to the next one."""
        self._turn += 1


class Rates:
    """Requests that were sent to each replica in the last 60 s."""

    def __init__(self) -> None:
        self._sent: dict[int, deque[float]] = {}

    def add(self, number: int, now_s: float) -> None:
        """Learn of a request."""
        times = self._sent.setdefault(number, deque())
        times.append(now_s)
        while times[0] < now_s - _WINDOW_S:
            times.popleft()

    def drop(self, number: int) -> None:
        """Forget a replica: it counts as never used."""
        self._sent.pop(number, None)

    def lowest(self, able: Sequence[View], now_s: float) -> Ranking:
        """Return the first that was never used, else the first with the lowest rate."""
        rates = {one.number: self._rate(one.number, now_s) for one in able}
        best = min(rates, key=lambda number: rates[number])
        return Ranking({best: 1.0}, "lowest rate" if rates[best] >= 0 else "never used", {"qps": rates})

    def _rate(self, number: int, now_s: float) -> float:
        """Return requests per second; -1 for a replica that was never used."""
        times = self._sent.get(number)
        if times is None:
            return -1.0
        return sum(time >= now_s - _WINDOW_S for time in times) / _WINDOW_S


class BySession(Router):
    """By consistent hashing of the session; without a session, by rate."""

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self._rates = Rates()
        self._ring = Ring(_POINTS)
        self._on_ring: tuple[int, ...] = ()

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the replica of the session; only healthy ones are on the circle."""
        able = healthy(replicas)
        if request.session is None:
            return self._rates.lowest(able, now_s)
        numbers = tuple([one.number for one in able])
        if numbers != self._on_ring:
            self._ring.place(able)
            self._on_ring = numbers
        return Ranking({next(self._ring.along(request.session)): 1.0}, "session")

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Count it in the rate."""
        self._rates.add(replica.number, now_s)

    def joined(self, replica: View, now_s: float) -> None:
        """Count it as never used."""
        self._rates.drop(replica.number)

    def left(self, replica: View, now_s: float) -> None:
        """Forget it."""
        self._rates.drop(replica.number)


class PrefixAware(BySession):
    """One of those that got the longest beginning of the prompt before, at random; loads do not count.

    Nothing is ever forgotten, as in the product: memory grows with the prompts that were sent.
    """

    settings: ProductionStackSettings

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self._blocks = Blocks()
        self._sent: dict[Key, dict[tuple[int, int], None]] = {}
        self._lives: dict[int, int] = {}

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return equal chances for those that are left when the chunks of the prompt are gone through."""
        able = healthy(replicas)
        kept, chunks = able, 0
        for key in self._chunks(request):
            having = self._sent.get(key, {})
            fewer = [one for one in kept if self._life(one) in having]
            if not fewer:
                break
            kept, chunks = fewer, chunks + 1
        if chunks * _CHUNK_CHARS < self.settings.prefix_min_match_length:
            return self._rates.lowest(able, now_s)
        scores = {"matched_chunks": dict.fromkeys([one.number for one in kept], chunks)}
        return Ranking(evenly(kept), "prefix match" if chunks else "no match", scores)

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Note that the replica got the prompt."""
        super().dispatched(request, replica, now_s)
        for key in self._chunks(request):
            self._sent.setdefault(key, {})[self._life(replica)] = None

    def joined(self, replica: View, now_s: float) -> None:
        """Count it as another one than before."""
        super().joined(replica, now_s)
        self._lives[replica.number] = self._lives.get(replica.number, 0) + 1

    def _chunks(self, request: Request) -> tuple[Key, ...]:
        tokens = _CHUNK_CHARS // self.settings.chars_per_token
        return self._blocks.of(request, tokens, with_rest=True)

    def _life(self, replica: View) -> tuple[int, int]:
        return replica.number, self._lives.get(replica.number, 0)


class KvAware(BySession):
    """The first replica whose cache has some of the prompt, if it has nearly all of it; else by session or rate."""

    settings: ProductionStackSettings

    @property
    def reads(self) -> frozenset[Signal]:
        """What the caches have."""
        return frozenset({Signal.CACHED})

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return that replica."""
        cached = {one.number: one.cached_tokens(request) for one in healthy(replicas)}
        first = next((number for number, tokens in cached.items() if tokens), None)
        if first is None or cached[first] < max(0, request.prompt_tokens - self.settings.kv_aware_threshold):
            return super().rank(request, replicas, now_s)
        return Ranking({first: 1.0}, "cached", {"cached_tokens": cached})


_LOGICS: dict[str, type[Router]] = {
    "roundrobin": RoundRobinByName,
    "session": BySession,
    "prefixaware": PrefixAware,
    "kvaware": KvAware,
}


class ProductionStack(Several):
    """The routing logics of production-stack."""

    Settings = ProductionStackSettings
    settings: ProductionStackSettings
    summary: ClassVar[str] = "vLLM production-stack: in turn, by session, by prompts sent before, or by cache"
    checked: ClassVar[str] = "source (commit a6c01db)"
    recovery: ClassVar[Recovery] = Recovery(retries=0, source="production-stack a6c01db")

    def made(self) -> Router:
        """Return the policy of `routing_logic`."""
        return _LOGICS[self.settings.routing_logic](self.settings, self.random)
