"""What a cluster can say at awkward moments, by a client that says it: nothing is lost or waited for in vain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from simqueue.errors import InputError, RunError
from simqueue.execution import Failed, cluster
from simqueue.execution.cluster import DaskCluster
from simqueue.execution.cluster_worker import installed

from . import tasks


class KilledWorker(Exception):  # noqa: N818 - the name that Dask gives it
    """What Dask says of a task of which several workers died."""


class Future:
    """A task of the client, which is done when it is submitted."""

    def __init__(self, status: str, value: Any = None) -> None:
        self.status, self._value = status, value

    def add_done_callback(self, told: Callable[[Future], None]) -> None:
        """Tell at once."""
        told(self)

    def exception(self) -> Any:
        """Return what was raised."""
        return self._value

    def result(self, timeout: float) -> Any:
        """Return the value, or raise it."""
        if isinstance(self._value, BaseException):
            raise self._value
        return self._value


class Client:
    """Answers as a script says, and by doing tasks when it has ended."""

    def __init__(self, *script: Future | None) -> None:
        self.status = "running"
        self.threads = {"tcp://a": 1}
        self.script = list(script)
        self.there: Any = installed()
        self.at_scheduler: Any = installed()

    def nthreads(self) -> dict[str, int]:
        """Return the workers."""
        return self.threads

    def run_on_scheduler(self, function: Callable[[], Any]) -> Any:
        """Return what the scheduler has installed."""
        if isinstance(self.at_scheduler, Exception):
            raise self.at_scheduler
        return self.at_scheduler

    def run(self, function: Callable[[], Any], on_error: str) -> dict[str, Any]:
        """Return what workers have installed."""
        return dict.fromkeys(self.threads, self.there)

    def submit(self, function: Callable[..., Any], *arguments: Any, **_: Any) -> Future:
        """Do what is next in the script; functions are sent in any case."""
        if function is installed:
            return Future("error" if isinstance(self.there, Exception) else "finished", self.there)
        values = [one.result(0) if isinstance(one, Future) else one for one in arguments]
        if len(values) == 2 and self.script and (future := self.script.pop(0)) is not None:
            return future
        return Future("finished", function(*values))

    def cancel(self, futures: list[Future]) -> None:
        """Do nothing: all are done."""

    def close(self, timeout: float) -> None:
        """Do nothing."""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., DaskCluster]]:
    """Return what opens an executor with a client of ours."""
    monkeypatch.setattr(cluster, "_LOOK_AGAIN_S", 0.01)
    made: list[DaskCluster] = []

    def open_with(client: Client) -> DaskCluster:
        monkeypatch.setattr(cluster, "_connected", lambda *_: client)
        made.append(DaskCluster("tcp://scheduler"))
        return made[-1]

    yield open_with
    for one in made:
        one.__exit__(None, None, None)


def test_a_task_of_which_dask_says_that_it_kills_has_failed(opened: Callable[..., DaskCluster]) -> None:
    """Where a worker comes back with its address, Dask itself gives it the task again, and gives up at some time."""
    where = opened(Client(Future("error", KilledWorker("4 workers died"))))
    outcomes = dict(where.unordered(tasks.square, [2, 3]))
    assert outcomes == {0: Failed("its worker process died", died=True), 1: 9}


def test_a_task_that_a_worker_cannot_read_has_failed(opened: Callable[..., DaskCluster]) -> None:
    """Such as for want of a module there: it is not tried again."""
    where = opened(Client(Future("error", ModuleNotFoundError("No module named 'x'"))))
    ((_, outcome),) = where.unordered(tasks.square, [2])
    with pytest.raises(RunError, match="ModuleNotFoundError: No module named 'x'"):
        outcome.reraise()


@pytest.mark.parametrize("said", [Future("cancelled"), Future("lost"), Future("finished", cluster.CancelledError())])
def test_a_task_that_the_cluster_has_forgotten_is_done_again(said: Future, opened: Callable[..., DaskCluster]) -> None:
    """As when someone restarts all workers, or an outcome is lost before it was fetched."""
    assert sorted(opened(Client(said, said)).unordered(tasks.square, [2, 3])) == [(0, 4), (1, 9)]


def test_an_outcome_that_does_not_come_is_fetched_again(opened: Callable[..., DaskCluster]) -> None:
    """Large ones take a while; one whose worker has left is made again by another."""
    client = Client(Future("finished", TimeoutError()))
    where = opened(client)
    client.threads = {"tcp://b": 1}
    assert list(where.unordered(tasks.square, [2])) == [(0, 4)]
    assert [member.address for member in where.members] == ["tcp://b"]


def test_a_worker_with_another_version_that_joins_is_not_used(opened: Callable[..., DaskCluster]) -> None:
    """A warning names it, once; the run goes on."""
    client = Client()
    where = opened(client)
    client.threads = {"tcp://a": 1, "tcp://b": 1}
    client.there = {**installed(), "NumPy": "1.0"}
    with pytest.warns(UserWarning, match=r"worker tcp://b is not used: NumPy 1\.0 is not that") as caught:
        list(where.unordered(tasks.napping, range(5)))
    assert len(caught) == 1
    assert [member.address for member in where.members] == ["tcp://a"]


def test_a_worker_without_the_package_is_an_error(opened: Callable[..., DaskCluster]) -> None:
    """What the worker says is in the error."""
    client = Client()
    client.there = ModuleNotFoundError("No module named 'simqueue'")
    with pytest.raises(InputError, match=r"worker tcp://a: simqueue \S+ cannot be used there: No module"):
        opened(client)


def test_a_scheduler_without_the_package_is_an_error(opened: Callable[..., DaskCluster]) -> None:
    """It reads tasks before it sends them to workers, so that all of them would fail."""
    client = Client()
    client.at_scheduler = ModuleNotFoundError("No module named 'simqueue'")
    with pytest.raises(InputError, match=r"the scheduler: simqueue \S+ cannot be used there: No module named"):
        opened(client)


def test_a_cluster_without_workers_is_an_error(
    opened: Callable[..., DaskCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a short time: workers may just be starting."""
    monkeypatch.setattr(cluster, "_CONNECT_S", 0.0)
    client = Client()
    client.threads = {}
    with pytest.raises(InputError, match="the cluster has no workers"):
        opened(client)


def test_a_lost_client_is_an_error_after_what_came(opened: Callable[..., DaskCluster]) -> None:
    """Outcomes that were there are handed over first."""
    client = Client()
    outcomes = opened(client).unordered(tasks.square, range(100))
    assert next(outcomes) == (0, 0)
    client.status = "connecting"
    with pytest.raises(RunError, match="the connection to the cluster was lost"):
        list(outcomes)
