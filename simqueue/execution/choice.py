"""Which executor a number of workers or an address stands for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral

from simqueue.errors import InputError, show
from simqueue.execution.contract import Executor, Workers
from simqueue.execution.here import ThisProcess
from simqueue.execution.local import LocalProcesses


def executor(workers: int | None = None, dask: str | None = None) -> Executor:
    """Return where tasks run.

    Parameters
    ----------
    workers : int, optional
        Processes of this machine, at most one per core, which is the default; 1: this process.
    dask : str, optional
        Address of the scheduler of a Dask cluster, such as ``tcp://10.0.0.5:8786``.

    Raises
    ------
    InputError
        If the number is none, if both are given, or if the cluster cannot be used.
    """
    if workers is not None and dask is not None:
        raise InputError(f"--workers {show(workers)}: a cluster (--dask) has its own number of workers")
    _check(workers)
    if dask is not None:
        from simqueue.execution.cluster import DaskCluster  # noqa: PLC0415 - few commands use a cluster

        return DaskCluster(dask)
    cores = os.cpu_count() or 1
    used = cores if workers is None else min(int(workers), cores)
    if used == 1 or not LocalProcesses.possible:
        return ThisProcess()
    return LocalProcesses(used, chosen=workers is not None)


@contextmanager
def opened(workers: Workers) -> Iterator[Executor]:
    """Open the executor that a parameter `workers` stands for; one that the caller has opened stays open.

    Raises
    ------
    InputError
        As for `executor`.
    """
    if isinstance(workers, Executor):
        yield workers
    else:
        with executor(workers) as made:
            yield made


def _check(workers: int | None) -> None:
    """Raise `InputError` unless a number of processes is a whole number >= 1, or None."""
    if workers is not None and (not isinstance(workers, Integral) or isinstance(workers, bool) or workers < 1):
        raise InputError(f"workers = {show(workers)}: must be a whole number >= 1")
