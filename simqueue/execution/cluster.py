"""Tasks done by the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import logging
import queue
import re
import time
from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Final
from warnings import warn

from simqueue.errors import InputError, RunError
from simqueue.execution.calls import Task
from simqueue.execution.cluster_worker import ClusterWorker, installed
from simqueue.execution.contract import Failed
from simqueue.execution.packed import packed_with_code
from simqueue.execution.pool import Pool
from simqueue.printable import shortened

_ADDRESS: Final = re.compile(r"((tcp|tls|ws|wss|ucx)://)?(\[[\da-f:]+\]|[\w.-]{1,253}):\d{1,5}", re.ASCII)
_CONNECT_S: Final = 5.0
_LOOK_AGAIN_S: Final = 0.5
"""How often is looked which workers there are."""
_WITHOUT_WORKERS_S: Final = 60.0
"""How long is waited for a worker when there is none: nannies and batch systems start new ones."""
_FETCH_S: Final = 1.0
"""After this time without an outcome that is there, is looked whether its worker still is; longer each time."""


class DaskCluster(Pool[ClusterWorker]):
    """The executor of a Dask cluster, for as long as it is open. Workers may join and leave at any time.

    Parameters
    ----------
    address : str
        That of the scheduler, such as ``tcp://10.0.0.5:8786``.

    Raises
    ------
    InputError
        If distributed is not installed, if there is no scheduler or no worker, or if a worker has other versions.
    """

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address
        self._done: queue.SimpleQueue[tuple[ClusterWorker, Task, Any]] = queue.SimpleQueue()
        self._quiet = contextlib.ExitStack()
        self._client = _connected(address, self._quiet)
        self._unfit: set[str] = set()
        self._asked: dict[str, Any] = {}
        self._looked = self._seen = time.monotonic()
        try:
            self._check_scheduler()
            self._first_workers()
        except BaseException:
            self._close_client()
            raise

    @property
    def workers(self) -> int:
        """How many tasks are done at a time, by the workers that are there now."""
        return max(1, sum(member.threads for member in self.members))

    def pays(self, seconds: float) -> bool:
        """Return True: the user chose the cluster."""
        return True

    def packed(self, value: object) -> bytes:
        """Return a function or a task as bytes, with code that is not installed here."""
        return packed_with_code(value)

    def can_start(self) -> bool:
        """Return False: the cluster has the workers that it has."""
        return False

    def start(self) -> ClusterWorker:
        """Never called."""
        raise NotImplementedError

    def receive(self) -> None:
        """Wait until a task is done; now and then look which workers there are.

        An error is raised before an outcome is taken, never after it, so that no outcome gets lost.
        """
        if time.monotonic() - self._looked >= _LOOK_AGAIN_S:
            self._look()
        with contextlib.suppress(queue.Empty):
            self._take(*self._done.get(timeout=_LOOK_AGAIN_S))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave the cluster. Tasks that have begun end there, and their outcomes are dropped."""
        try:
            with contextlib.suppress(OSError):
                super().__exit__(kind, error, traceback)
        finally:
            self._close_client()

    def _close_client(self) -> None:
        with self._quiet:
            self._client.close(timeout=_CONNECT_S)

    def _take(self, member: ClusterWorker, task: Task, future: Any) -> None:
        """Take what came of a task, if it is still that worker's."""
        if task not in member.tasks:
            return
        if not task.call.wanted:
            self.closed(member, task, None)
        elif future.status == "error":
            self.closed(member, task, _failed(future.exception()))
        elif future.status == "finished":
            self._fetch(member, task, future)
        else:
            self._again(member, task)
        member.done(task)

    def _fetch(self, member: ClusterWorker, task: Task, future: Any) -> None:
        """Fetch an outcome; its worker may end before it has been fetched."""
        wait_s = _FETCH_S
        while member in self.members:
            try:
                answer = future.result(timeout=wait_s)
            except TimeoutError:
                self._look()
                wait_s *= 2
            except CancelledError:
                self._again(member, task)
                return
            else:
                self.answered(member, task, answer)
                return

    def _again(self, member: ClusterWorker, task: Task) -> None:
        """Take back a task that the cluster has forgotten, as when its worker has left or all workers are restarted."""
        self._look()
        if member in self.members:
            member.tasks.remove(task)
            member.resend(task.call)
            self.take_back(task)

    def _look(self) -> None:
        """Take back tasks of workers that have left, and use those that have joined."""
        threads = self._threads()
        self._looked = time.monotonic()
        gone = [member for member in self.members if member.address not in threads]
        for member in gone:
            self.bury(member)
        self._ask(threads)
        self._add(threads)
        if self.members or gone:
            self._seen = self._looked
        elif self._looked - self._seen > _WITHOUT_WORKERS_S:
            raise RunError(f"--dask {self._address}: no worker for {_WITHOUT_WORKERS_S:g} s")

    def _check_scheduler(self) -> None:
        """The scheduler reads tasks, too: without the package, all of them would fail."""
        try:
            there = self._client.run_on_scheduler(installed)
        except Exception as error:  # whatever it answers
            there = error
        if problem := _difference(installed(), there):
            raise InputError(f"--dask {self._address}: the scheduler: {problem}")

    def _first_workers(self) -> None:
        until = time.monotonic() + _CONNECT_S
        while not (threads := self._threads()):
            if time.monotonic() > until:
                raise InputError(f"--dask {self._address}: the cluster has no workers")
            time.sleep(0.1)
        here, there = installed(), self._client.run(installed, on_error="return")
        for address in threads:
            if problem := _difference(here, there.get(address)):
                raise InputError(f"--dask {self._address}: worker {address}: {problem}")
            self._use(address, threads[address])

    def _ask(self, threads: Mapping[str, int]) -> None:
        """Ask workers that have joined what they have installed. This does not wait: one may be gone again."""
        forgotten = ("cancelled", "lost")
        self._asked = {
            one: future for one, future in self._asked.items() if one in threads and future.status not in forgotten
        }
        known = {member.address for member in self.members} | self._unfit | self._asked.keys()
        for address in sorted(threads.keys() - known):
            self._asked[address] = self._client.submit(
                installed, workers=[address], allow_other_workers=False, pure=False, retries=0
            )

    def _add(self, threads: Mapping[str, int]) -> None:
        """Use workers that have answered and are as this process is; tell of others."""
        here = installed() if self._asked else {}
        for address, future in list(self._asked.items()):
            there = _answer_of(future)
            if there is None:
                continue
            del self._asked[address]
            if problem := _difference(here, there):
                self._unfit.add(address)
                warn(f"worker {address} is not used: {problem}", stacklevel=2)
            else:
                self._use(address, threads[address])

    def _use(self, address: str, threads: int) -> None:
        self.members.append(ClusterWorker(self._client, address, threads, self._tell))

    def _tell(self, member: ClusterWorker, task: Task, future: Any) -> None:
        self._done.put((member, task, future))

    def _threads(self) -> dict[str, int]:
        """Return the workers that there are, and how many tasks each does at a time."""
        try:
            if self._client.status == "running":
                return dict(self._client.nthreads())
        except (OSError, TimeoutError):
            pass
        raise self._lost()

    def _lost(self) -> RunError:
        return RunError(f"--dask {self._address}: the connection to the cluster was lost")


def _connected(address: str, quiet: contextlib.ExitStack) -> Any:
    if not _ADDRESS.fullmatch(address):
        raise InputError(
            f"--dask {shortened(address)}: must be the address of a scheduler, such as tcp://10.0.0.5:8786"
        )
    try:
        from distributed import Client  # noqa: PLC0415 - an extra, and slow to load
    except ImportError:
        raise InputError("--dask: needs the package distributed: pip install 'simqueue[dask]'") from None
    try:
        quiet.enter_context(_without_logs())
        return Client(address, timeout=_CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]  # theirs
    except (OSError, TimeoutError, ValueError, TypeError, ImportError) as error:
        quiet.close()
        text = " ".join(str(error).split())
        raise InputError(f"--dask {address}: no Dask scheduler answers there: {text}") from None


@contextlib.contextmanager
def _without_logs() -> Iterator[None]:
    """Let distributed print nothing: errors say in one line what it tells in many."""
    # stays: it tells when it cleans up, which may be later
    logging.getLogger("asyncio").addFilter(_not_of_distributed)
    logs = [logging.getLogger(name) for name in ("distributed", "distributed.client", "tornado.application")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)


def _not_of_distributed(record: logging.LogRecord) -> bool:
    """Return whether a record is of another program: asyncio tells of exceptions that distributed leaves behind."""
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    return not type(error).__module__.startswith("distributed")


def _answer_of(future: Any) -> object:
    """Return what a worker has installed, or the error that it gives; None as long as it has not answered."""
    if future.status == "error":
        return future.exception()
    if future.status == "finished":
        with contextlib.suppress(TimeoutError, CancelledError):
            return future.result(timeout=_FETCH_S)
    return None


def _difference(here: Mapping[str, str], there: object) -> str:
    """Return what a worker has that would change results; empty if nothing."""
    if not isinstance(there, Mapping):
        text = " ".join(str(there).split())
        return f"simqueue {here['simqueue']} cannot be used there: {text or 'it has left'}"
    for name, ours in here.items():
        if there.get(name) != ours:
            return f"{name} {there.get(name)} is not that of this process, {ours}"
    return ""


def _failed(error: BaseException) -> Failed:
    """Return the failure of a task that raised nothing itself: its worker died too often, or cannot read it."""
    if type(error).__name__ == "KilledWorker":
        return Failed("its worker process died", died=True)
    return Failed(" ".join(str(error).split()), type(error).__name__)
