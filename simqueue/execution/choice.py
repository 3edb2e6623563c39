"""Which executor a number of workers or an address stands for."""

from __future__ import annotations

from numbers import Integral

from simqueue.errors import InputError, show
from simqueue.execution.contract import Executor
from simqueue.execution.here import ThisProcess


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
    check_workers(workers)
    return ThisProcess()


def check_workers(workers: int | None) -> None:
    """Raise `InputError` unless a number of processes is a whole number >= 1, or None."""
    if workers is not None and (not isinstance(workers, Integral) or isinstance(workers, bool) or workers < 1):
        raise InputError(f"workers = {show(workers)}: must be a whole number >= 1")
