"""Runs collected tests in forked processes: once as they are, then once per mutant until a test fails.

The parent imports everything and never runs a test, so that a fork costs milliseconds. A test that uses far more
processor time than it does without a mutant counts as failed: the mutant has made a loop endless.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import pytest

MEMORY_BYTES = 8 * 2**30
FORK = get_context("fork")

Tell = Callable[[Any], None]


class Report(NamedTuple):
    """What became of one test: processor time of this process and of those that it started."""

    name: str
    seconds: float
    passed: bool
    seconds_of_children: float


class Trial:
    """One forked process with its reports, and None at the end."""

    def __init__(self, play: Callable[[Tell], None], limit_s: float) -> None:
        self._reader, writer = FORK.Pipe(duplex=False)
        self._process = FORK.Process(target=_child, args=(play, writer))
        self._process.start()
        writer.close()
        self._gives_up_at = time.monotonic() + limit_s

    @property
    def reader(self) -> Connection:
        """What becomes ready once a report has come or the process has ended."""
        return self._reader

    def reports(self) -> list[Any]:
        """Return what has come; the last is "hung" if the process died or took too long."""
        found: list[Any] = []
        try:
            while self._reader.poll():
                found.append(self._reader.recv())
        except EOFError:
            found.append("hung")
        if not found and time.monotonic() > self._gives_up_at:
            found.append("hung")
        return found

    def all_reports(self) -> Iterator[Any]:
        """Yield the reports of tests until the process ends."""
        while True:
            connection.wait([self._reader], timeout=1.0)
            for report in self.reports():
                if report in (None, "hung"):
                    self.end()
                    return
                yield report

    def end(self) -> None:
        """Stop the process and all that it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self._reader.close()


def _child(play: Callable[[Tell], None], writer: Connection) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):
        os.dup2(quiet, number)
    play(writer.send)
    os._exit(0)


def play_items(
    items: list[pytest.Item],
    tell: Tell,
    *,
    limits_s: dict[str, float],
    enough_s: float = float("inf"),
    stop_at_failure: bool = False,
) -> None:
    """Run tests in order, each with a limit on its processor time, until `enough_s` seconds are spent."""
    failed: list[str] = []

    class Watch:
        @pytest.hookimpl
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    if items:
        items[0].config.pluginmanager.register(Watch())
    begin_s = time.process_time() + _seconds_of_children()
    for item, following in zip(items, [*items[1:], None], strict=True):
        start_s, others_s = time.process_time(), _seconds_of_children()
        if start_s + others_s - begin_s > enough_s:
            break
        signal.setitimer(signal.ITIMER_VIRTUAL, limits_s.get(item.nodeid, 0.0))
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        tell(Report(item.nodeid, time.process_time() - start_s, not failed, _seconds_of_children() - others_s))
        if failed and stop_at_failure:
            break
        failed.clear()
    tell(None)


def _seconds_of_children() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def wait_any(trials: list[Trial]) -> Iterator[Trial]:
    """Wait a moment; yield the trials that have something to say or are late."""
    connection.wait([trial.reader for trial in trials], timeout=1.0)
    yield from trials


def freeze() -> None:
    """Keep what is imported out of the collector's way, so that forks share it."""
    gc.collect()
    gc.freeze()
