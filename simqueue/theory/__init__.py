"""Queueing theory, usable without a simulation: closed forms, exact Markov chains, and the capacity law.

Every function documents its parameters with units and its valid range, and raises `InputError` outside it.

>>> from simqueue import theory
>>> round(theory.mm1(arrival_rate=0.8, service_rate=1).mean_wait_s, 6)
4.0

Modules, whose names can all be taken from `simqueue.theory` itself:

- `single_server`: M/M/1, M/D/1, M/G/1; Kingman's bound and approximation
- `disciplines`: priorities, shortest job first, SRPT, foreground-background, processor sharing
- `many_servers`: Erlang B and C, M/M/c, M/M/1/K
- `renewal`: GI/M/1 for gamma and constant gaps
- `routing`: servers with a queue each, which customers join at random, in turn, or as the shortest of a few of many
- `choices`: the shortest of d queues among a few servers, the shortest of all included
- `bulk`: service in batches and steps of exponential or known duration
- `sharing`: continuous batching as generalised processor sharing
- `tails`: decay rates and heavy tails of waits
- `capacity`, `operating_point`: the capacity of an LLM server, and its latencies below capacity
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

_MODULES = (
    *("single_server", "disciplines", "many_servers", "renewal", "routing", "choices", "bulk", "sharing", "tails"),
    *("capacity", "operating_point"),
)
"""Modules whose functions and records can be taken from this package. They are imported at first use."""


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        for module in map(_module, _MODULES):
            if name in _own_names(module):
                return getattr(module, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*_MODULES, *(name for module in map(_module, _MODULES) for name in _own_names(module))})


def _module(name: str) -> ModuleType:
    return import_module(f"{__name__}.{name}")


def _own_names(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
