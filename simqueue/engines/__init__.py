"""Named engines at versions: which policy, which defaults, each fact with its source."""

from typing import Any

from simqueue.engines.base import CacheRules, Engine, SettledEngine, Surroundings
from simqueue.engines.vllm import Vllm

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (Vllm(),)}
"""Name in the scenario file -> engine."""


def engine_rows() -> list[dict[str, Any]]:
    """Return one row per version of each engine, for ``simqueue list engines``."""
    return [row for engine in ENGINES.values() for row in engine.rows()]


__all__ = ["ENGINES", "CacheRules", "Engine", "SettledEngine", "Surroundings", "engine_rows"]
