"""Functions, tasks and outcomes as bytes.

cloudpickle, because classes of a notebook or of the main program have to travel, too.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

from simqueue.execution.contract import Failed


def packed(value: object) -> bytes:
    """Return a value as bytes; `unpacked` gives it back.

    Raises
    ------
    Exception
        If it cannot be pickled.
    """
    import cloudpickle  # noqa: PLC0415 - only where there are other processes

    return bytes(cloudpickle.dumps(value))


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


def _travels(error: Exception) -> bool:
    """Return whether an exception can be pickled, and is the same afterwards."""
    try:
        return str(unpacked(packed(error))) == str(error)
    except Exception:  # whatever its class raises
        return False
