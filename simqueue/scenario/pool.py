"""The KV pool of a policy: how many blocks it has, and whether its engine would start with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simqueue.engines import CacheRules, ResolvedEngine
from simqueue.errors import InputError
from simqueue.hardware import Gpu, Model, activation_bytes, check_fits, kv_pool_blocks
from simqueue.kvcache.settings import KVCacheSettings


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a policy runs on; None: not given.

    Attributes
    ----------
    model : Model or None
    gpu : Gpu or None
    tensor_parallel : int
        GPUs that share the model.
    """

    model: Model | None
    gpu: Gpu | None
    tensor_parallel: int


def pool_blocks(keys: KVCacheSettings, rules: CacheRules, hardware: Hardware) -> int:
    """Return the usable blocks of the pool: a number that was written down, else what memory leaves.

    Raises
    ------
    InputError
        If the weights do not fit, no block fits, or the number can be had from nothing.
    """
    model, gpu, tensor_parallel = hardware.model, hardware.gpu, hardware.tensor_parallel
    if model is None or gpu is None:
        if keys.blocks == "auto":
            raise InputError("needs model and gpu; give a number of blocks", "kv_cache", "blocks", value="auto")
        return keys.blocks
    if keys.blocks != "auto":
        check_fits(gpu, model, tensor_parallel, rules.memory_share, share_key=rules.share_key)
        return keys.blocks
    activations = activation_bytes(model, tensor_parallel, rules.profiled_tokens) or 0.0
    blocks = kv_pool_blocks(
        gpu,
        model,
        tensor_parallel,
        rules.memory_share,
        rules.block_size,
        taken_bytes=activations + rules.outside_bytes,
        share_key=rules.share_key,
    )
    if blocks <= rules.reserved_blocks:
        raise InputError(f"no KV block fits besides {rules.reserved_blocks} that the engine keeps", "kv_cache")
    return blocks - rules.reserved_blocks


def unknown_activations(keys: KVCacheSettings, rules: CacheRules, model: Model | None) -> str | None:
    """Return a warning if the pool should leave room for activations and their size cannot be told."""
    if keys.blocks != "auto" or model is None or not rules.profiled_tokens:
        return None
    if activation_bytes(model, 1, rules.profiled_tokens) is not None:
        return None
    return (
        f"the KV pool leaves no room for activations, since the widths of {model.name} are unknown; give hidden, "
        "intermediate and vocab instead of parameters"
    )


@dataclass(frozen=True, slots=True)
class Lengths:
    """The max_model_len of an engine, and others that it could have.

    Attributes
    ----------
    longest_tokens : int
        The one that it has.
    is_models : bool
        Whether it is that of the model, since none was given.
    tokens_at : callable
        max_model_len -> tokens in the pool of the same engine with it; 0 if there is no pool.
    steps : tuple of int
        See `Engine.length_steps`. Between two of them, pools do not grow with max_model_len.
    """

    longest_tokens: int
    is_models: bool
    tokens_at: Callable[[int], int]
    steps: tuple[int, ...]

    @property
    def advice(self) -> str | None:
        """Which max_model_len, up to the one that it has, is the longest with which it would start; None: none."""
        fitting = self._longest_that_fits()
        return None if fitting is None else f"the longest max_model_len that fits is {fitting}"

    def _longest_that_fits(self) -> int | None:
        ends = [*(step for step in self.steps if step < self.longest_tokens), self.longest_tokens]
        starts = [1, *(end + 1 for end in ends[:-1])]
        for low, high in zip(reversed(starts), reversed(ends), strict=True):
            if self._fits(low):
                return _last_that_holds(low, high, self._fits)
        return None

    def _fits(self, length: int) -> bool:
        return self.tokens_at(length) >= length


def unstartable(engine: ResolvedEngine, blocks: int, lengths: Lengths) -> str | None:
    """Return why an engine with this many blocks would not start; None if one request of max_model_len fits."""
    tokens = blocks * engine.cache.block_size
    if lengths.longest_tokens <= tokens:
        return None
    return (
        f"{engine.title} would not start: one request of max_model_len = {lengths.longest_tokens}"
        f"{' (that of the model)' if lengths.is_models else ''} does not fit the KV pool of {tokens} tokens "
        f"({blocks} blocks); {lengths.advice or 'no max_model_len fits'}"
    )


def _last_that_holds(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the last number in ``low..high`` for which `holds` is true; it is true up to there, and for `low`."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
