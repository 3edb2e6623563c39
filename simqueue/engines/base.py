"""The contract of engines: versions, flags by the engine's own names, and their values on a deployment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from simqueue.errors import InputError
from simqueue.hardware import Model
from simqueue.kvcache import FreeQueue, KVCache, KVCacheSettings, VllmFreeQueue
from simqueue.schedulers import Policy
from simqueue.schedulers.limits import RequestLimits
from simqueue.settings import Settings

Maker = Callable[[KVCache, RequestLimits], Policy]
"""Returns a new policy for a KV cache and request limits."""

GIVEN = "given"
"""Origin of a value that was written down."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """What an engine's defaults depend on.

    Attributes
    ----------
    gpu_name : str or None
        The name that the device reports; None if no GPU is named.
    gpu_memory_bytes : int or None
        The memory that the device reports.
    kv_cache : KVCacheSettings
        The scenario's own keys. Keys that were not written down take the default of the version.
    max_model_len : int or None
        Most prompt + output tokens per request.
    tensor_parallel : int
        GPUs that share the model.
    """

    gpu_name: str | None
    gpu_memory_bytes: int | None
    kv_cache: KVCacheSettings
    max_model_len: int | None
    tensor_parallel: int = 1


@dataclass(frozen=True, slots=True)
class CacheRules:
    """How an engine's KV cache behaves.

    Attributes
    ----------
    block_size : int
        Tokens per block.
    memory_share : float
        Share of the GPU's memory for weights and KV.
    prefix_caching : bool
        Whether full blocks are reused by later requests with the same prefix.
    free_queue : callable
        Number of blocks -> free queue of a prefix cache: the order in which free blocks are reused.
    registration_lag : int
        Steps after which a generated block can be found.
    watermark : float
        Share of the pool that admissions leave free.
    reserved_blocks : int
        Blocks that the engine counts in its pool and never uses (its null block).
    share_key : str
        The key or flag that decides `memory_share`, for messages.
    profiled_tokens : int
        Tokens of the step with which the engine measures its activations before it sizes the pool; 0: it does not.
    outside_bytes : float
        Memory of each GPU that the engine takes outside the allocator of its tensors, in bytes.
    tree : tuple or None
        Values of `RadixRules`, if the cache is a radix tree; then `free_queue` and `registration_lag` have no meaning.
    """

    block_size: int
    memory_share: float
    prefix_caching: bool
    free_queue: Callable[[int], FreeQueue] = VllmFreeQueue
    registration_lag: int = 0
    watermark: float = 0.0
    reserved_blocks: int = 0
    share_key: str = "memory_share"
    profiled_tokens: int = 0
    outside_bytes: float = 0.0
    tree: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class ResolvedEngine:
    """An engine at a version, with the value of every flag.

    Attributes
    ----------
    title : str
        Engine, version and usage.
    values : mapping of str to value
        Value of each flag; None: the version has no such flag.
    origins : mapping of str to str
        Origin of each value: ``given``, or the source of the version's default. Same keys as `values`.
    cache_origins : mapping of str to str
        The same for the keys of `kv_cache` that a flag overrides.
    cache : CacheRules
        Behaviour of the KV cache.
    cuts_output : bool
        Whether outputs end at max_model_len; otherwise requests that exceed it are rejected.
    make : callable
        See `Maker`.
    needs_one_request : bool
        Whether it does not start unless its pool holds a request of max_model_len; otherwise requests are limited by
        the pool too.
    """

    title: str
    values: Mapping[str, Any]
    origins: Mapping[str, str]
    cache_origins: Mapping[str, str]
    cache: CacheRules
    cuts_output: bool
    make: Maker
    needs_one_request: bool = True


class Engine(ABC):
    """The scheduler of a real server, by version."""

    name: ClassVar[str]
    Settings: ClassVar[type[Settings]]
    """Flags by the engine's own names; None: the default of the version."""
    cache_flags: ClassVar[Mapping[str, str]]
    """Key of `kv_cache` -> the flag with the same meaning. The flag overrides the key."""
    length_steps: ClassVar[tuple[int, ...]] = ()
    """Values of max_model_len above which other defaults hold, ascending."""

    @abstractmethod
    def resolve(self, flags: Any, deployment: Deployment) -> ResolvedEngine:
        """Return the value of every flag.

        Raises
        ------
        InputError
            If a flag does not exist at that version, or values contradict each other. Its key is the flag.
        """

    def served(self, model: Model) -> tuple[Model, str | None]:
        """Return a model as the engine serves it by default, and a note if it differs from what its file stores."""
        return model, None

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Return one row per version, for ``simqueue list engines``."""

    @abstractmethod
    def summary(self, values: Mapping[str, Any]) -> str:
        """Return one line with version and the flags that decide the schedule.

        Parameters
        ----------
        values : mapping
            The keys of a resolved policy, with `version` and every flag.
        """


def with_defaults(
    flags: Settings,
    defaults: Mapping[str, Any],
    source: str,
    kv_cache: KVCacheSettings,
    cache_flags: Mapping[str, str],
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the value and the origin of each flag in `defaults`.

    A value is that of the flag, else that of the key of `kv_cache` which `cache_flags` maps to the flag, else the
    default. The origin is `GIVEN`, or `source` for defaults. A key of `kv_cache` at its own default gives no value to a
    flag whose default is None, which the version does not have.
    """
    values, origins = dict(defaults), dict.fromkeys(defaults, source)
    keys = {flag: key for key, flag in cache_flags.items() if key in kv_cache.model_fields_set}
    for flag, default in defaults.items():
        given = getattr(flags, flag)
        if given is None and flag in keys:
            given = getattr(kv_cache, keys[flag])
            if default is None and given == KVCacheSettings.model_fields[keys[flag]].default:
                continue
        if given is not None:
            values[flag], origins[flag] = given, GIVEN
    return values, origins


def deciding_key(flags: Settings, kv_cache: KVCacheSettings, cache_flags: Mapping[str, str], key: str) -> str:
    """Return the name of what decides a value: the key of `kv_cache` if only that was written down, else the flag."""
    flag = cache_flags[key]
    return key if getattr(flags, flag) is None and key in kv_cache.model_fields_set else flag


def reject_flags(flags: Settings, names: Iterable[str], text: str, neutral: Container[Any] = ()) -> None:
    """Check that flags which do not exist were not given.

    Parameters
    ----------
    flags : Settings
        The flags as written down.
    names : iterable of str
        Flags that do not exist.
    text : str
        The text of the error.
    neutral : container
        Values that are allowed although the flag does not exist, besides its default.

    Raises
    ------
    InputError
        At the first such flag.
    """
    for name in names:
        value = getattr(flags, name)
        if value != type(flags).model_fields[name].default and value not in neutral:
            raise InputError(text, name, value=value)


def reject_cache_keys(
    kv_cache: KVCacheSettings,
    cache_flags: Mapping[str, str],
    flags: Container[str],
    text: str,
    neutral: Container[Any] = (),
) -> None:
    """Check that keys of `kv_cache` with the meaning of a flag which does not exist were not given.

    Parameters
    ----------
    kv_cache : KVCacheSettings
        The keys as written down.
    cache_flags : mapping of str to str
        See `Engine.cache_flags`.
    flags : container of str
        Flags that do not exist.
    text, neutral
        As for `reject_flags`.

    Raises
    ------
    InputError
        At the first such key.
    """
    for key, flag in cache_flags.items():
        value = getattr(kv_cache, key)
        if flag in flags and value != KVCacheSettings.model_fields[key].default and value not in neutral:
            raise InputError(text, "kv_cache", key, value=value)
