"""From one policy's settled values to the parts of a simulation."""

from __future__ import annotations

from dataclasses import dataclass

from simqueue.errors import InputError
from simqueue.hardware import check_fits, kv_pool_blocks
from simqueue.kvcache import ContiguousKVCache, KVCache, PagedKVCache
from simqueue.scenario.resolve import EffectivePolicy
from simqueue.schedulers import SCHEDULERS, Policy
from simqueue.schedulers.door import Door
from simqueue.steptime import StepTime
from simqueue.steptime import build as build_step_time


@dataclass(frozen=True, slots=True)
class Parts:
    """What a simulation of one policy is made of.

    Attributes
    ----------
    policy : Policy
        Fresh, with its KV cache.
    step_time : StepTime
    """

    policy: Policy
    step_time: StepTime


def build(chosen: EffectivePolicy, *, refuse_oversized: bool) -> Parts:
    """Build the parts of one policy.

    Parameters
    ----------
    chosen : EffectivePolicy
    refuse_oversized : bool
        Whether requests that the whole pool cannot hold are turned away (``unservable: reject``).

    Raises
    ------
    InputError
        If the model does not fit the GPU, or a key that is needed here is missing.
    """
    max_model_len = longest_request_tokens(chosen)
    kv = _kv_cache(chosen, max_model_len)
    policy_class = SCHEDULERS[chosen.scheduler]
    policy = policy_class(chosen.settings, kv, Door(max_model_len, refuse_oversized))  # type: ignore[call-arg] # the contract's constructor
    return Parts(policy, build_step_time(chosen.step_time, chosen.model, chosen.gpu, chosen.tensor_parallel))


def longest_request_tokens(chosen: EffectivePolicy) -> int | None:
    """Return the most tokens a request may have: max_model_len, else what the model was made for, else no limit."""
    if chosen.max_model_len is not None or chosen.model is None:
        return chosen.max_model_len
    return chosen.model.max_position


def _kv_cache(chosen: EffectivePolicy, max_model_len: int | None) -> KVCache:
    keys = chosen.kv_cache
    blocks = keys.blocks if keys.blocks != "auto" else _auto_blocks(chosen)
    if chosen.model is not None and chosen.gpu is not None:
        check_fits(chosen.gpu, chosen.model, chosen.tensor_parallel, keys.memory_share)
    if keys.layout == "paged":
        return PagedKVCache(blocks, keys.block_size, int(keys.watermark * blocks))
    if keys.reserve == "model_max" and max_model_len is None:
        raise InputError(f"policies.{chosen.name}: kv_cache.reserve = model_max needs max_model_len; it is null")
    reserve_tokens = max_model_len if keys.reserve == "model_max" else None
    return ContiguousKVCache(blocks, keys.block_size, int(keys.watermark * blocks), reserve_tokens)


def _auto_blocks(chosen: EffectivePolicy) -> int:
    if chosen.model is None or chosen.gpu is None:
        raise InputError(f"policies.{chosen.name}: kv_cache.blocks = auto needs model and gpu; give a number of blocks")
    keys = chosen.kv_cache
    return kv_pool_blocks(chosen.gpu, chosen.model, chosen.tensor_parallel, keys.memory_share, keys.block_size)
