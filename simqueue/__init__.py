"""A discrete-event laboratory for LLM inference serving.

>>> import simqueue as sq
>>> result = sq.run("module08")  # doctest: +SKIP
>>> result.summary               # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simqueue import theory
    from simqueue.decisions.baseline import write_baseline
    from simqueue.decisions.capacity import capacity
    from simqueue.decisions.comparing_results import changes
    from simqueue.decisions.global_sensitivity import global_sensitivity
    from simqueue.decisions.tuning.tune import tune
    from simqueue.errors import InputError, RunError, SimqueueError
    from simqueue.execution import executor
    from simqueue.experiment import rare, run
    from simqueue.experiment.best import best
    from simqueue.experiment.questions import compare
    from simqueue.experiment.sensitivity import sensitivity
    from simqueue.results.stored import read_result as load_result
    from simqueue.scenario import Scenario
    from simqueue.scenario import load as load_scenario
    from simqueue.sweeps.sweep import Sweep, load_sweep, sweep

    __version__: str
    __compiled__: bool
    """Whether the inner loop of the engine is compiled. Uncompiled, the same files run two to three times slower."""

__all__ = [
    "InputError",
    "RunError",
    "Scenario",
    "SimqueueError",
    "Sweep",
    "__compiled__",
    "__version__",
    "best",
    "capacity",
    "changes",
    "compare",
    "executor",
    "global_sensitivity",
    "load_result",
    "load_scenario",
    "load_sweep",
    "rare",
    "run",
    "sensitivity",
    "sweep",
    "theory",
    "tune",
    "write_baseline",
]

_SOURCES = {
    "InputError": "simqueue.errors:InputError",
    "RunError": "simqueue.errors:RunError",
    "Scenario": "simqueue.scenario:Scenario",
    "SimqueueError": "simqueue.errors:SimqueueError",
    "Sweep": "simqueue.sweeps.sweep:Sweep",
    "__compiled__": "simqueue.installation:COMPILED",
    "__version__": "simqueue.installation:VERSION",
    "best": "simqueue.experiment.best:best",
    "capacity": "simqueue.decisions.capacity:capacity",
    "changes": "simqueue.decisions.comparing_results:changes",
    "compare": "simqueue.experiment.questions:compare",
    "executor": "simqueue.execution:executor",
    "global_sensitivity": "simqueue.decisions.global_sensitivity:global_sensitivity",
    "load_result": "simqueue.results.stored:read_result",
    "load_scenario": "simqueue.scenario:load",
    "load_sweep": "simqueue.sweeps.sweep:load_sweep",
    "rare": "simqueue.experiment.rare:",
    "run": "simqueue.experiment:run",
    "sensitivity": "simqueue.experiment.sensitivity:sensitivity",
    "sweep": "simqueue.sweeps.sweep:sweep",
    "theory": "simqueue.theory:",
    "tune": "simqueue.decisions.tuning.tune:tune",
    "write_baseline": "simqueue.decisions.baseline:write_baseline",
}
"""Public name -> module and name in it, or the module itself. They are imported at first use, because
`import simqueue` must be fast."""


def __getattr__(name: str) -> Any:
    """Return a public name, importing it at first use."""
    if name not in _SOURCES:
        raise AttributeError(f"module 'simqueue' has no attribute '{name}'")
    module, _, original = _SOURCES[name].partition(":")
    source = import_module(module)
    return getattr(source, original) if original else source


def __dir__() -> list[str]:
    return sorted(__all__)
