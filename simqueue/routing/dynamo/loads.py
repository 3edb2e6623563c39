"""What a router has sent to each worker and what of it is still open, in tokens and blocks."""

from __future__ import annotations

from dataclasses import dataclass, field

from simqueue.routing.blocks import Key, common
from simqueue.routing.dynamo.costs import Worker


@dataclass(slots=True)
class _Load:
    """Sums over the requests of a worker."""

    open_prefill_tokens: int = 0
    requests: int = 0
    output_blocks: int = 0
    users: dict[Key, int] = field(default_factory=dict)
    """How many requests have a block; with a block, they have all blocks before it."""


@dataclass(slots=True)
class _Booking:
    worker: int
    keys: tuple[Key, ...]
    open_prefill_tokens: int
    output_blocks: int = 0


class Loads:
    """The requests at each worker. A block that several of them share counts once."""

    def __init__(self) -> None:
        self._workers: dict[int, _Load] = {}
        self._bookings: dict[str, _Booking] = {}

    def __len__(self) -> int:
        return len(self._bookings)

    def open_prefill_tokens(self, worker: int) -> int:
        """Return the prompt tokens whose prefill has not ended."""
        return self._workers.get(worker, _NOTHING).open_prefill_tokens

    def with_prompt(self, worker: int, keys: tuple[Key, ...], device_blocks: int = 0) -> Worker:
        """Return what is at a worker, and its different blocks if a prompt with these blocks were added."""
        load = self._workers.get(worker, _NOTHING)
        blocks = len(load.users) + load.output_blocks + len(keys) - common(keys, load.users)
        return Worker(load.open_prefill_tokens, blocks, load.requests, device_blocks)

    def book(self, name: str, worker: int, keys: tuple[Key, ...], prefill_tokens: int) -> None:
        """Add a request."""
        load = self._workers.setdefault(worker, _Load())
        load.requests += 1
        load.open_prefill_tokens += prefill_tokens
        for key in keys:
            load.users[key] = load.users.get(key, 0) + 1
        self._bookings[name] = _Booking(worker, keys, prefill_tokens)

    def prefill_complete(self, name: str) -> None:
        """Learn that the first token of a request was made: none of its prompt tokens is open."""
        booking = self._bookings[name]
        self._workers[booking.worker].open_prefill_tokens -= booking.open_prefill_tokens
        booking.open_prefill_tokens = 0

    def output_block(self, name: str) -> None:
        """Learn that the output of a request has filled a block."""
        booking = self._bookings[name]
        booking.output_blocks += 1
        self._workers[booking.worker].output_blocks += 1

    def free(self, name: str) -> None:
        """Take a request away."""
        self.prefill_complete(name)
        booking = self._bookings.pop(name)
        load = self._workers[booking.worker]
        load.requests -= 1
        load.output_blocks -= booking.output_blocks
        for key in booking.keys:
            load.users[key] -= 1
            if not load.users[key]:
                del load.users[key]
        if not load.requests:
            del self._workers[booking.worker]


_NOTHING = _Load()
"""Read only."""
