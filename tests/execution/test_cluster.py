"""A Dask cluster of processes over TCP: the same outcomes, while workers join, are killed, and end.

The tests share one cluster, and are in the order in which it is used up.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import simqueue as sq
from simqueue.errors import InputError, RunError
from simqueue.execution import Failed, cluster, cluster_worker, executor
from simqueue.execution.cluster import DaskCluster
from simqueue.schedulers import SCHEDULERS

from . import tasks

SCENARIO = {
    "step_time": {"kind": "constant", "seconds": 0.01},
    "kv_cache": {"blocks": 1000},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 20},
        "num_requests": 40,
        "prompt_tokens": {"distribution": "constant", "value": 20},
        "output_tokens": {"distribution": "geometric", "mean": 8},
    },
    "policies": {"p": {"scheduler": "chunked"}},
    "replications": 3,
}


POLICY = """
from simqueue.schedulers import Chunked, scheduler

@scheduler("travels")
class Travels(Chunked):
    def chunk(self, job, step):
        return min(super().chunk(job, step), 8)
"""


class Cluster:
    """A scheduler and its workers, each a process."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "scheduler.json"
        self._folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")

    @property
    def address(self) -> str:
        """The address of the scheduler, when it has written it."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if self._file.exists() and (text := self._file.read_text()):
                return str(json.loads(text)["address"])
            time.sleep(0.02)
        raise TimeoutError

    def add(self) -> None:
        """Start a worker, which waits for the file of the scheduler."""
        self._start("worker", "--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--no-dashboard")

    def _start(self, *words: str) -> None:
        with (self._folder / f"{len(self.processes)}.log").open("wb") as log:
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-W", "ignore", "-m", "dask", *words, "--scheduler-file", self._file],
                    stdout=log,
                    stderr=log,
                    cwd=self._folder,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                )
            )


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a cluster with two workers."""
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    made.add()
    made.add()
    yield made
    for process in made.processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def where(processes: Cluster) -> Iterator[DaskCluster]:
    """Return the executor of the cluster, when both workers are there."""
    with executor(dask=processes.address) as found:
        assert isinstance(found, DaskCluster)
        _until_there_are(2, found)
        yield found


def _until_there_are(workers: int, where: DaskCluster) -> None:
    until = time.monotonic() + 30
    while len(where.members) != workers and time.monotonic() < until:
        where.receive()
    assert where.workers == workers


def test_outcomes_are_those_of_this_process(where: DaskCluster) -> None:
    """Values and failures; the code of the tasks is not installed on the workers, and travels."""
    outcomes = dict(where.unordered(lambda task: 12 // task, [3, 0, 4]))
    assert (outcomes[0], outcomes[2]) == (4, 3)
    assert isinstance(outcomes[1], Failed)
    with pytest.raises(ZeroDivisionError, match=r"division or modulo by zero"):
        outcomes[1].reraise()
    strange = dict(where.unordered(tasks.awkward, ["unreadable", "unsendable", "raise"]))
    assert all(isinstance(outcome, Failed) and not outcome.died for outcome in strange.values())


def test_a_scheduler_from_a_file_travels(
    processes: Cluster, command: Callable[..., Any], scenario_file: Callable[..., Path], tmp_path: Path
) -> None:
    """A command prints what it prints without the cluster; the file of the scheduler is only here."""
    policy = tmp_path / "policy_that_travels.py"
    policy.write_text(POLICY)
    file = scenario_file({**SCENARIO, "policies": {"p": {"scheduler": "travels"}}})
    words = ("run", file, "--json-summary", "--import", policy)
    with patch.dict(SCHEDULERS):
        here, there = command(*words, "--workers", 1), command(*words, "--dask", processes.address)
    assert (there.code, there.err, there.out) == (0, "", here.out)


def test_another_version_is_an_error(processes: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other versions would give other results: the error says where, and names both versions."""
    monkeypatch.setattr(cluster_worker, "VERSION", "9.9")
    with pytest.raises(InputError, match=r"the scheduler: simqueue \S+ is not that of this process, 9\.9"):
        executor(dask=processes.address)


def test_a_sweep_has_the_same_bytes_while_a_worker_is_killed(
    processes: Cluster, where: DaskCluster, tmp_path: Path
) -> None:
    """Cells of which some were on a worker that was killed half-way give the table of this process."""
    rates = {"workload.arrivals.rate_rps": [5, 10, 15, 20, 25, 30, 35, 40]}

    def kill(_: str, done: int, __: int) -> None:
        if done == 3:
            processes.processes[1].kill()

    sq.sweep(SCENARIO, grid=rates, out=tmp_path / "there", workers=where, progress=kill)
    _until_there_are(1, where)
    sq.sweep(SCENARIO, grid=rates, out=tmp_path / "here", workers=1)
    assert (tmp_path / "there/rows.parquet").read_bytes() == (tmp_path / "here/rows.parquet").read_bytes()


def test_a_worker_that_joins_is_used(processes: Cluster, where: DaskCluster) -> None:
    """While a call goes on: tasks that are pulled later go to it, too."""
    processes.add()
    pulled = itertools.takewhile(lambda _: len(where.members) < 2, itertools.count())
    seen = list(where.unordered(tasks.napping, pulled))
    assert sorted(seen) == [(number, number) for number in range(len(seen))]
    assert where.workers == 2


def test_a_task_that_kills_workers_fails_and_without_workers_nothing_goes_on(
    where: DaskCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers die of it. No others are started here: the tasks after it, which do not end, cannot be done."""
    monkeypatch.setattr(cluster, "_WITHOUT_WORKERS_S", 0.1)
    until = time.monotonic() + 60
    numbers = itertools.takewhile(lambda _: time.monotonic() < until, itertools.count())
    outcomes = where.unordered(tasks.killing, ((number, "always" if number == 1 else "") for number in numbers))
    found = []
    with pytest.raises(RunError, match="no worker for"):
        found.extend(outcomes)
    assert dict(found)[1] == Failed("its worker process died", died=True)
    assert where.members == []


def test_a_lost_scheduler_is_an_error(processes: Cluster, where: DaskCluster) -> None:
    """It is told in one line."""
    processes.processes[0].kill()
    with pytest.raises(RunError, match=r"^--dask tcp://127.0.0.1:\d+: the connection to the cluster was lost"):
        list(where.unordered(tasks.square, [1]))


def test_an_address_without_a_scheduler_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens at the port, or the address is none."""
    monkeypatch.setattr(cluster, "_CONNECT_S", 0.2)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(InputError, match="no Dask scheduler answers there") as caught:
        executor(dask=f"tcp://127.0.0.1:{port}")
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="no Dask scheduler answers there"):
        executor(dask="tcp://127.0.0.1:99999")


@pytest.mark.parametrize("address", ["nonsense://x:1", "tcp://", "", "here", "tcp://a b:1", "tcp://a:1/x"])
def test_an_address_has_a_host_and_a_port(address: str) -> None:
    """Anything else is told at once."""
    with pytest.raises(InputError, match=r"must be the address of a scheduler, such as tcp://"):
        executor(dask=address)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'simqueue\[dask\]'"):
        executor(dask="tcp://127.0.0.1:1")
