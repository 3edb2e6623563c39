"""A request as SGLang's scheduler keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from simqueue.kvcache.radix import Holding
from simqueue.kvcache.radixtree import RadixNode
from simqueue.request import Job

if TYPE_CHECKING:
    from simqueue.schedulers.sglang_batch import DecodeBatch

NEVER: Final = 1 << 62
CLIP_TOKENS: Final = 4096
"""The most tokens of an answer that are reserved (SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION)."""


class Entry:
    """A request in the scheduler.

    Attributes
    ----------
    job : Job
    holding : Holding
        What it has in the cache; while it decodes, its length is that when it joined the batch.
    prompt : int
        Tokens of the prompt that the engine takes.
    max_new : int
        Tokens that it may make, as the engine limits them.
    target : int
        Tokens that it makes.
    ignores_eos : bool
        Whether the engine knows that it makes all of `max_new`.
    generated : int
        Tokens that have been delivered (while not in a batch).
    entered : int
        When it was queued last, as a number that grows.
    aged : int
        Prefill tokens that the scheduler had run by then.
    fill : int
        Tokens known when its context was computed last.
    stored : int
        Tokens that had been computed when it was put into the tree last.
    node, matched
        Where its tokens end in the tree, and how many they are, as last looked up.
    wanted : int
        Tokens to compute when it was last looked at for admission; 0 before.
    finished, batch, base, kv_base, rank, ends_at, clipped
        Kept by the batch.
    """

    __slots__ = (
        "aged",
        "base",
        "batch",
        "clipped",
        "ends_at",
        "entered",
        "fill",
        "finished",
        "generated",
        "holding",
        "ignores_eos",
        "job",
        "kv_base",
        "matched",
        "max_new",
        "node",
        "prompt",
        "rank",
        "stored",
        "target",
        "wanted",
    )

    def __init__(self, job: Job, holding: Holding, max_new: int, target: int, ignores_eos: bool) -> None:
        self.job = job
        self.holding = holding
        self.prompt = holding.prompt_tokens
        self.max_new = max_new
        self.target = target
        self.ignores_eos = ignores_eos
        self.generated = 0
        self.entered = self.aged = self.fill = self.stored = self.matched = self.wanted = 0
        self.node: RadixNode | None = None
        self.finished = False
        self.batch: DecodeBatch | None = None
        self.base = self.kv_base = self.rank = 0
        self.ends_at = NEVER
        self.clipped = False

    @property
    def made(self) -> int:
        """Tokens that have been delivered."""
        batch = self.batch
        return self.generated if batch is None or self.finished else self.base + batch.delivered

    @property
    def known(self) -> int:
        """Tokens of prompt and answer that the scheduler knows."""
        return self.prompt + self.made

    @property
    def kv_tokens(self) -> int:
        """Its tokens in the cache, those of a step in flight included."""
        batch = self.batch
        return self.holding.length if batch is None or self.finished else self.kv_base + batch.planned


def left_of(entry: Entry) -> int:
    """Return what is reserved for a request: tokens that it may still make, up to a limit."""
    return min(entry.max_new - entry.made, CLIP_TOKENS)
