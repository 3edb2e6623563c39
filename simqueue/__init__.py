"""simqueue: a discrete-event laboratory for LLM inference serving.

>>> import simqueue as sq
>>> result = sq.run("scenarios/module08.yaml")          # doctest: +SKIP
>>> result.summary                                       # doctest: +SKIP
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simqueue.experiment import run
    from simqueue.scenario import Scenario
    from simqueue.scenario import load as load_scenario

try:
    __version__ = version("simqueue")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0+unknown"

__all__ = ["Scenario", "__version__", "load_scenario", "run"]


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used: the command line starts without them."""
    if name == "run":
        from simqueue.experiment import run

        return run
    if name == "Scenario":
        from simqueue.scenario import Scenario

        return Scenario
    if name == "load_scenario":
        from simqueue.scenario import load

        return load
    raise AttributeError(f"module 'simqueue' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
