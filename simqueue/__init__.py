"""simqueue: a discrete-event laboratory for LLM inference serving.

>>> import simqueue as sq
>>> result = sq.run("scenarios/module08.yaml")          # doctest: +SKIP
>>> result.summary                                       # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simqueue.errors import InputError, RunError, SimqueueError
    from simqueue.experiment import run
    from simqueue.scenario import Scenario
    from simqueue.scenario import load as load_scenario

    __version__: str
    __compiled__: bool
    """Whether the engine's inner loop is compiled; the same Python files run uncompiled, two to three times slower."""

__all__ = ["InputError", "RunError", "Scenario", "SimqueueError", "__compiled__", "__version__", "load_scenario", "run"]


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
    if name in ("InputError", "RunError", "SimqueueError"):
        from simqueue import errors

        return getattr(errors, name)
    if name == "__version__":
        return _installed_version()
    if name == "__compiled__":
        return _is_compiled()
    raise AttributeError(f"module 'simqueue' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)


def _installed_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("simqueue")
    except PackageNotFoundError:  # a source tree that is not installed
        return "0+unknown"


def _is_compiled() -> bool:
    from importlib.util import find_spec

    found = find_spec("simqueue.request")
    return found is not None and not str(found.origin).endswith(".py")
