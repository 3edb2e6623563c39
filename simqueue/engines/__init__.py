"""Named engines at versions: which policy, which defaults, each fact with its source."""

from simqueue.engines.base import CacheRules, Engine, SettledEngine, Surroundings
from simqueue.engines.vllm import Vllm

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (Vllm(),)}
"""Name in the scenario file -> engine."""

__all__ = ["ENGINES", "CacheRules", "Engine", "SettledEngine", "Surroundings"]
