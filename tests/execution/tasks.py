"""Tasks for worker processes: some fail, some end their process."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any


def square(number: int) -> int:
    """Return the square."""
    return number * number


def killing(task: tuple[int, str]) -> int:
    """Return the first value. The second one says how often the process is killed: never, always, or unless a file is.

    Such a file is made before the first death.
    """
    number, deadly = task
    if deadly and not (deadly != "always" and Path(deadly).exists()):
        if deadly != "always":
            Path(deadly).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def watched(task: tuple[int, bool], folder: Path) -> list[str]:
    """Return which tasks run when this one begins. A deadly one is killed the first time."""
    number, deadly = task
    here = folder / str(number)
    others = sorted(path.name for path in folder.iterdir() if path.name.isdigit() and path != here)
    if deadly and not here.exists():
        here.touch()
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    here.touch()
    time.sleep(0.01)
    here.unlink()
    return others


class _DeadlyInside:
    """Its process is killed soon after it is pickled: while the outcome that it is part of is being sent."""

    def __reduce__(self) -> tuple[type[int], tuple[()]]:
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return int, ()


def dies_sending(number: int) -> Any:
    """Return much; of 3, the process dies while it is sent."""
    return (b"x" * 50_000_000, _DeadlyInside()) if number == 3 else number


class Unreadable:
    """Can be sent and not be read."""

    def __reduce__(self) -> tuple[type[int], tuple[str]]:
        return int, ("unreadable",)


class Unsendable:
    """Cannot be sent."""

    def __reduce__(self) -> tuple[Any, ...]:
        raise ValueError("stays here")


class Particular(Exception):  # noqa: N818 - what a program of its own may raise
    """An exception that pickle makes wrongly."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def awkward(task: str) -> Any:
    """Return or raise what does not travel."""
    if task == "raise":
        raise Particular(1, 2)
    return {"unreadable": Unreadable, "unsendable": Unsendable}[task]()


def napping(number: int) -> int:
    """Return the number after a while."""
    time.sleep(0.02)
    return number
