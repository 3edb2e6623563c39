"""Replicas as routers see them, made by hand or drawn at random; and routers by their keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import strategies as st
from scipy import stats

from simqueue.request import Request
from simqueue.routing import ROUTERS, Router


@dataclass
class Replica:
    """A `View` whose values a test sets."""

    number: int
    name: str = ""
    group: str = "replica"
    weight: float = 1.0
    block_size: int = 16
    max_num_batched_tokens: int | None = None
    kv_tokens: int = 100_000
    healthy: bool = True
    in_flight: int = 0
    in_flight_prompt_tokens: int = 0
    in_flight_tokens: int = 0
    free_seats: int = 1
    running: int = 0
    waiting: int = 0
    kv_used: float = 0.0
    tokens: int = 0
    seen_s: float = 0.0
    cached: dict[str, int] = field(default_factory=dict)
    """By the id of a request, the tokens of its prompt that it has."""

    def __post_init__(self) -> None:
        self.name = self.name or f"replica-{self.number}"

    def cached_tokens(self, request: Request) -> int:
        """Return what was set."""
        return self.cached.get(request.request_id, 0)


def replicas(n: int, **values: Sequence[Any]) -> list[Replica]:
    """Return `n` replicas, each with its own one of each list of values."""
    return [Replica(i, **{name: listed[i] for name, listed in values.items()}) for i in range(n)]


def request(
    name: str = "r",
    *,
    prompt: int = 100,
    session: str | None = None,
    pieces: tuple[tuple[int, int, int], ...] | None = None,
) -> Request:
    """Return a request at time 0; `pieces` are the tokens of its prompt."""
    return Request(name, 0.0, prompt, 10, session=session, prompt=pieces)


def made(kind: str, seed: int = 0, **keys: Any) -> Router:
    """Return a router by its keys in a scenario."""
    cls = ROUTERS[kind]
    return cls(cls.Settings.model_validate(keys), Random(seed))


_FEW = st.integers(0, 3)
_NUMBERS = st.lists(st.integers(0, 40), min_size=1, max_size=9, unique=True)


@st.composite
def fleets(draw: st.DrawFn) -> list[Replica]:
    """Draw replicas in any order, many of them equally loaded, at least one of them healthy."""
    found = [
        Replica(
            number,
            weight=draw(st.sampled_from([0.5, 1, 1, 2, 7])),
            healthy=draw(st.booleans()),
            in_flight=draw(_FEW),
            in_flight_prompt_tokens=draw(_FEW) * 100,
            in_flight_tokens=draw(_FEW) * 150,
            free_seats=draw(_FEW),
            running=draw(_FEW),
            waiting=draw(_FEW),
            kv_used=draw(_FEW) / 4,
            tokens=draw(_FEW) * 64,
            cached={"r": draw(_FEW) * 25},
        )
        for number in draw(_NUMBERS)
    ]
    found[draw(st.integers(0, len(found) - 1))].healthy = True
    return found


def p_value(router: Router, seen: list[Replica], asked: Request, draws: int = 3000) -> float:
    """Return how likely choices differ from the chances of `rank` as much as these; 0 if one had no chance."""
    chances = router.rank(asked, seen, 0.0).chances
    counts = Counter(router.choose(asked, seen, 0.0).replica for _ in range(draws))
    if not counts.keys() <= chances.keys():
        return 0.0
    expected = [draws * chance for chance in chances.values()]
    return float(stats.chisquare([counts[number] for number in chances], expected).pvalue) if len(chances) > 1 else 1.0
