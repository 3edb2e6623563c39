"""The limits of a server, and the capacity that follows from them: what the capacity law takes and gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Resource = Literal["slots", "tokens", "kv", "compute", "front end", "router"]
_ALWAYS_FELT = ("compute", "front end", "router")
COMPUTE_BOUND = 1.01
"""Compute is the limit if unlimited slots, tokens and KV would raise the rate by less than this factor."""


@dataclass(frozen=True, slots=True)
class Server:
    """The limits of a replica.

    Attributes
    ----------
    batching : {"mixed", "separate", "chunked", "static"}
        Whole prompts together with decodes, prompts in separate steps, chunks together with decodes, or padded waves.
    max_num_seqs : int
    max_num_batched_tokens : int or None
        None means no limit.
    chunk_tokens : int or None
        Largest number of prompt tokens per request and step.
    kv_blocks : int or None
        Blocks of the KV pool; None means no limit.
    block_size : int
        Tokens per block.
    reserve_tokens : int or "request_max" or None
        Tokens reserved per request, "request_max" for prompt and output, or None if blocks are allocated as needed.
    depth : int
        Steps in flight at one time. With 2, a request keeps its slot and its blocks for one step after its last token.
    spare_blocks : int
        Further blocks, which only running requests can take.
    whole_context : bool
        Whether a request is admitted only if blocks for its whole prompt are free, though it is computed in chunks.
    keeps_evicted : bool
        Whether an evicted request finds again what is left of its blocks in the pool.
    fills_waves : bool
        Whether a padded wave waits until it is full.
    sorts_waves : bool
        Whether padded waves are gathered in the order of lengths.
    """

    batching: Literal["mixed", "separate", "chunked", "static"]
    max_num_seqs: int
    max_num_batched_tokens: int | None = None
    chunk_tokens: int | None = None
    kv_blocks: int | None = None
    block_size: int = 16
    reserve_tokens: int | Literal["request_max"] | None = None
    depth: int = 1
    spare_blocks: int = 0
    whole_context: bool = False
    keeps_evicted: bool = False
    fills_waves: bool = False
    sorts_waves: bool = False


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity of a server.

    Attributes
    ----------
    max_rate_rps : float
        Largest rate in requests per second; above it the queue grows without bound.
    binding : str
        The resource that limits the rate: slots, tokens, kv, compute or front end; for static batching slots, kv or
        front end; for a fleet also router.
    limits_rps : mapping of resource to float
        Largest rate if this were the only limit; for compute, if there were no other. None is below `max_rate_rps`.
    steps_per_request : float
        g of the binding resource; if that is the front end, of the one that binds behind it.
    step_s : float
        Duration of an average step if the GPU is saturated, which it is not if the front end binds.
    running : float
        Requests in an average step if the GPU is saturated.
    """

    max_rate_rps: float
    binding: Resource
    limits_rps: Mapping[Resource, float]
    steps_per_request: float
    step_s: float
    running: float

    @property
    def felt_rps(self) -> dict[Resource, float]:
        """`limits_rps` with infinity for resources that cost less than 1 % beside compute: the least one is binding."""
        if self.binding != "compute":
            return dict(self.limits_rps)
        felt = COMPUTE_BOUND * self.max_rate_rps
        return {
            name: math.inf if name not in _ALWAYS_FELT and rate <= felt else rate
            for name, rate in self.limits_rps.items()
        }


@dataclass(frozen=True, slots=True)
class Limit:
    """The capacity of a policy and how sure it is.

    Attributes
    ----------
    capacity : Capacity
    low_rps, high_rps : float or None
        Bounds, if the closed form does not describe the policy; None if it does, or if no bound is known.
    doubt : str
        Empty, or why the capacity is less sure than usual.
    """

    capacity: Capacity
    low_rps: float | None = None
    high_rps: float | None = None
    doubt: str = ""

    @property
    def caution(self) -> str:
        """Empty, or the doubt and what is known in spite of it."""
        return f"{self.doubt}: {self._known()}" if self.doubt else ""

    def _known(self) -> str:
        low_rps, high_rps = self.low_rps, self.high_rps
        if low_rps is not None and high_rps is not None:
            return f"the capacity is between {low_rps:.3g} and {high_rps:.3g} req/s"
        if low_rps is not None:
            return f"the capacity is at least {low_rps:.3g} req/s"
        if high_rps is not None:
            return f"the capacity is at most {high_rps:.3g} req/s"
        return "the error of the capacity is not known"
