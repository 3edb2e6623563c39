"""Sweeps that are killed: ``killed.py FOLDER CELLS SEED`` leaves two folders, and prints how many cells each has run.

It forks the sweeps, so that the package is loaded once. It is a program of its own because a process with threads, such
as that of the tests, must not be forked.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from random import Random

import simqueue as sq

sys.path.append(str(Path(__file__).parent))
from toys import RATE, toy


def started(folder: Path, cells: int) -> tuple[int, int]:
    """Start a sweep, and return its process and the pipe on which it says of each cell that it is stored."""
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        sq.sweep(
            toy(requests=5),
            grid={RATE: f"4:32:{cells}"},
            out=folder,
            workers=1,
            check=False,
            progress=lambda *_: os.write(writer, b"."),  # type: ignore[arg-type] # what it returns is not used
        )
        os._exit(0)
    os.close(writer)
    return process, reader


def killed(process: int, reader: int, random: Random) -> int:
    """Kill a sweep at some instant after a few cells, and return how many it had run."""
    told = len(os.read(reader, 1))
    for _ in range(random.randint(0, 5)):
        told += len(os.read(reader, 1))
    time.sleep(random.random() / 50)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return told + len(os.read(reader, 1000))


def main(folder: Path, cells: int, seed: int) -> None:
    """Kill one sweep after another, then one of two at once; the other goes on to the end."""
    random = Random(seed)
    sq.sweep(toy(), grid={RATE: [1, 2]}, out=folder / "first", workers=1)  # loads all that sweeps need
    told = [killed(*started(folder / "killed", cells), random) for _ in range(3)]
    first, second = (started(folder / "killed", cells) for _ in range(2))
    told.append(killed(*first, random))
    os.waitpid(second[0], 0)
    told.append(len(os.read(second[1], 1000)))
    os.waitpid(started(folder / "whole", cells)[0], 0)
    print(*told)  # noqa: T201 - what the test reads


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
