"""Functions, tasks and outcomes as bytes.

cloudpickle, because classes of a notebook or of the main program have to travel, too.
"""

from __future__ import annotations

import pickle
import re
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

from simqueue.execution.contract import Failed

_INSTALLED: Final = re.compile(r"[/\\\\](site|dist)-packages[/\\\\]")


def packed(value: object) -> bytes:
    """Return a value as bytes; `unpacked` gives it back.

    Raises
    ------
    Exception
        If it cannot be pickled.
    """
    import cloudpickle  # noqa: PLC0415 - only where there are other processes

    return bytes(cloudpickle.dumps(value))


def packed_with_code(value: object) -> bytes:
    """Return a value as bytes that other machines can read: code that is not installed here is a part of it.

    Raises
    ------
    Exception
        If it cannot be pickled.
    """
    import cloudpickle  # noqa: PLC0415 - only where there are other processes

    own = _not_installed(list(sys.modules.values()))
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        return packed(value)
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


def unpacked(data: bytes) -> Any:
    """Return the value of `packed`, which this program or its workers have written."""
    return pickle.loads(data)  # noqa: S301 - from processes that run our code anyway


def packed_outcome(outcome: object) -> bytes:
    """Return an outcome as bytes; one that cannot be sent is a failure, and an exception that cannot stays behind."""
    if isinstance(outcome, Failed) and outcome.exception is not None and not _travels(outcome.exception):
        outcome = replace(outcome, exception=None)
    try:
        return packed(outcome)
    except Exception as error:  # whatever `__reduce__` and `__getstate__` of an object raise
        return packed(Failed(f"its outcome cannot be sent: {error}", type(error).__name__))


def outcome_of(data: bytes) -> Any:
    """Return the outcome of `packed_outcome`; one that cannot be read here is a failure."""
    try:
        return unpacked(data)
    except Exception as error:  # whatever the objects raise
        return Failed(f"its outcome cannot be read: {error}", type(error).__name__)


def _not_installed(modules: Iterable[object]) -> list[ModuleType]:
    """Return the modules that come from files of a program, such as those of ``--import``."""
    found = (module for module in modules if isinstance(module, ModuleType))
    return [module for module in found if _is_own(module.__name__, module.__dict__.get("__file__"))]


@lru_cache(maxsize=10_000)
def _is_own(name: str, file: str | None) -> bool:
    if not isinstance(file, str) or name.partition(".")[0] in ("simqueue", "__main__", "__mp_main__"):
        return False
    return not file.startswith(sysconfig.get_path("stdlib")) and not _INSTALLED.search(file)


def _travels(error: Exception) -> bool:
    """Return whether an exception can be pickled, and is the same afterwards."""
    try:
        return str(unpacked(packed(error))) == str(error)
    except Exception:  # whatever its class raises
        return False
