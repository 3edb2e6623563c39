"""The contract of engines: a name, versions, flags by the engine's own names, and what they come to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from simqueue.kvcache import KVCache, KVCacheSettings
from simqueue.schedulers import Policy
from simqueue.schedulers.door import Door
from simqueue.settings import Settings


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an engine looks at when it chooses its defaults.

    Attributes
    ----------
    gpu_name : str or None
        As the device calls itself; None where no GPU is named.
    gpu_memory_bytes : int or None
        As the device reports it.
    kv_cache : KVCacheSettings
        The scenario's own keys; those that were not written down take the version's default.
    max_model_len : int or None
    """

    gpu_name: str | None
    gpu_memory_bytes: int | None
    kv_cache: KVCacheSettings
    max_model_len: int | None


@dataclass(frozen=True, slots=True)
class CacheRules:
    """How an engine's KV cache behaves.

    Attributes
    ----------
    block_size : int
        Tokens a block.
    memory_share : float
        Share of the GPU's memory for weights and KV.
    prefix_caching : bool
    unhashed_first : bool
        Whether freed blocks without identity are reused before all others.
    registration_lag : int
        Steps by which the registration of generated blocks lags.
    watermark : float
        Share of the pool that admissions leave free.
    reserved_blocks : int
        Blocks the engine counts in its pool and never uses (its null block).
    """

    block_size: int
    memory_share: float
    prefix_caching: bool
    unhashed_first: bool = True
    registration_lag: int = 0
    watermark: float = 0.0
    reserved_blocks: int = 0


@dataclass(frozen=True, slots=True)
class SettledEngine:
    """An engine at a version with every value decided.

    Attributes
    ----------
    title : str
        Engine, version and usage, for people.
    values : mapping of str to value
        Every flag.
    origins : mapping of str to str
        Where each flag's value comes from: ``given``, or the source of the version's default.
    cache : CacheRules
    cuts_output : bool
        Whether answers end at max_model_len (else requests that would pass it are refused).
    make : callable
        Makes a fresh policy on a KV cache behind a door.
    """

    title: str
    values: Mapping[str, Any]
    origins: Mapping[str, str]
    cache: CacheRules
    cuts_output: bool
    make: Callable[[KVCache, Door], Policy]


class Engine(ABC):
    """A real server's scheduler, by version."""

    name: ClassVar[str]
    Settings: ClassVar[type[Settings]]
    """Flags by the engine's own names; None: the version's default."""

    @abstractmethod
    def settle(self, flags: Any, around: Surroundings) -> SettledEngine:
        """Decide every value.

        Raises
        ------
        InputError
            If a flag does not exist at that version, or values contradict each other.
        """

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Return one row a version, for ``simqueue list engines``."""
