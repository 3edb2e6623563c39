"""Schedulers of real servers, by version, with the flags of those servers by their own names.

An engine is one module with its flags and rules and one YAML file with its facts by version; it is listed in `ENGINES`.
"""

from typing import Any

from simqueue.engines.base import GIVEN, CacheRules, Deployment, Engine, ResolvedEngine
from simqueue.engines.sglang import SglangEngine
from simqueue.engines.vllm import Vllm

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (Vllm(), SglangEngine())}
"""Every engine by the name that scenarios use."""


def engine_rows() -> list[dict[str, Any]]:
    """Return one row per version of each engine, for ``simqueue list engines``.

    All rows have the same keys. Columns that an engine does not have are None.
    """
    rows = [row for engine in ENGINES.values() for row in engine.rows()]
    columns = dict.fromkeys(column for row in rows for column in row)
    return [columns | row for row in rows]


__all__ = ["ENGINES", "GIVEN", "CacheRules", "Deployment", "Engine", "ResolvedEngine", "engine_rows"]
