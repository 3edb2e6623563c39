"""What comparisons of routers share: replicas as a recording shows them, and the test of one decision or of many."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from simqueue.errors import InputError
from simqueue.request import Request
from simqueue.settings import Settings, problems_of

S = TypeVar("S", bound=Settings)

_PIECE = 3
DEVIATIONS = 4.5
"""Standard deviations that a count may be from its mean; one more is allowed for whole numbers."""


@dataclass(slots=True)
class SeenReplica:
    """A `View` whose values are those of a recording."""

    number: int
    name: str = ""
    group: str = "recorded"
    weight: float = 1.0
    block_size: int = 16
    max_num_batched_tokens: int | None = None
    kv_tokens: int = 0
    healthy: bool = True
    in_flight: int = 0
    in_flight_prompt_tokens: int = 0
    in_flight_tokens: int = 0
    free_seats: int = 0
    running: int = 0
    waiting: int = 0
    kv_used: float = 0.0
    tokens: int = 0
    seen_s: float = 0.0
    cached: int = 0

    def cached_tokens(self, request: Request) -> int:
        """Return what the recording says of the prompt that is routed next."""
        return self.cached


def recorded_request(
    name: str, pieces: Sequence[Sequence[int]], *, arrival_s: float = 0.0, session: str | None = None
) -> Request:
    """Return a request with the prompt of a recording.

    Raises
    ------
    InputError
        If a piece of the prompt is not a stream, a start and a length, all whole numbers from 0 on.
    """
    for piece in pieces:
        if len(piece) != _PIECE or not all(isinstance(number, int) and number >= 0 for number in piece):
            raise InputError(f"request {name}: {piece} is not a piece [stream, start, length] of a prompt")
    prompt = tuple((stream, start, length) for stream, start, length in pieces if length)
    tokens = sum(length for _, _, length in prompt)
    return Request(name, arrival_s, tokens, 1, prompt=prompt, session=session)


def recorded_settings(settings: type[S], keys: Mapping[str, Any]) -> S:
    """Return the keys that were recorded; one that is not known here is an error."""
    try:
        return settings.model_validate(dict(keys))
    except ValidationError as error:
        first = problems_of(error)[0]
        raise InputError(f"{'.'.join(map(str, first.path))}: {first.text}") from None


def decision_differences(chances: Mapping[int, float], recorded: int | None, reason: str = "") -> Iterator[str]:
    """Yield a line if the recorded replica is none of those that can be chosen; None: none was chosen."""
    admitted = [number for number, chance in chances.items() if chance > 0]
    if (recorded in admitted) if admitted else (recorded is None):
        return
    ours = " or ".join(map(str, admitted)) or "none"
    why = f" ({reason})" if reason else ""
    yield f"worker {ours}{why}, recorded {'none' if recorded is None else recorded}"


def count_differences(chances: Mapping[int, float], counts: Sequence[int]) -> Iterator[str]:
    """Yield a line for each replica that was chosen too often or too rarely, given the chances of one choice."""
    n, total = sum(counts), sum(chances.values())
    for number, count in enumerate(counts):
        p = chances.get(number, 0.0) / total if total else 0.0
        allowed = DEVIATIONS * math.sqrt(n * p * (1 - p)) + 1 if p > 0 else 0.0
        if abs(count - n * p) > allowed:
            yield f"worker {number} {n * p:g} of {n} times (+-{allowed:.1f} allowed), recorded {count}"


def in_step(number: int, step: Mapping[str, Any], found: Iterator[str]) -> Iterator[str]:
    """Yield the lines with the place before them: the number of the step, from 0, and what it is."""
    name = f" {step['id']}" if "id" in step else ""
    for line in found:
        yield f"step {number} ({step['op']}{name}): {line}"
