"""Worker processes of this machine: some are killed, and every task has its outcome."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from multiprocessing import Pipe
from pathlib import Path

import pytest

from simqueue.errors import RunError
from simqueue.execution import Failed, worker
from simqueue.execution.here import ThisProcess
from simqueue.execution.local import LocalProcesses

from . import tasks


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalProcesses]:
    """Return two processes, which all tests share; killed ones are replaced."""
    with LocalProcesses(2) as made:
        yield made


def test_outcomes_are_those_of_this_process(pool: LocalProcesses) -> None:
    """Each task has one outcome, with its number, wherever it was done."""
    here = dict(ThisProcess().unordered(tasks.square, range(30)))
    there = list(pool.unordered(tasks.square, range(30)))
    assert sorted(there) == sorted(here.items())


def test_only_some_tasks_are_pulled_ahead(pool: LocalProcesses) -> None:
    """Tasks can be endless; at most two per process are in flight, and as many have waited for one round."""
    pulled = 0

    def endless() -> Iterator[int]:
        nonlocal pulled
        while True:
            pulled += 1
            yield pulled

    for taken, _ in enumerate(itertools.islice(pool.unordered(tasks.square, endless()), 20), start=1):
        assert pulled <= taken + 3 * pool.workers


def test_calls_can_overlap_and_be_left(pool: LocalProcesses) -> None:
    """Two calls share the processes, and the outcomes of one that was left are not those of another."""
    left = pool.unordered(tasks.square, itertools.count(1_000))
    next(left)
    first, second = (pool.unordered(tasks.square, range(start, start + 9)) for start in (0, 100))
    pairs = list(zip(first, second, strict=True))
    assert sorted(value for (_, value), _ in pairs) == [n * n for n in range(9)]
    assert sorted(value for _, (_, value) in pairs) == [n * n for n in range(100, 109)]


def test_a_task_that_kills_its_process_fails_and_the_others_do_not(pool: LocalProcesses, tmp_path: Path) -> None:
    """Two kill every process, two kill one only; all others have their outcomes."""
    deadly = {3: "always", 4: "always", 7: str(tmp_path / "7"), 11: str(tmp_path / "11")}
    outcomes = dict(pool.unordered(tasks.killing, [(number, deadly.get(number, "")) for number in range(14)]))
    failed = {number: outcome for number, outcome in outcomes.items() if isinstance(outcome, Failed)}
    assert failed == dict.fromkeys((3, 4), Failed("its process was killed (signal 9)", died=True))
    assert all(outcomes[number] == number for number in range(14) if number not in failed)
    with pytest.raises(RunError, match=r"its process was killed \(signal 9\)"):
        failed[3].reraise()


def test_a_suspect_is_done_alone(pool: LocalProcesses, tmp_path: Path) -> None:
    """A process may die because all tasks together need too much memory: the second time nothing else runs."""
    work = [(number, number in (4, 5)) for number in range(12)]
    outcomes = dict(pool.unordered(partial(tasks.watched, folder=tmp_path), work))
    assert (tmp_path / "died").exists()
    for number in (4, 5):
        others = outcomes[number]
        assert not isinstance(others, Failed)
        assert set(others) <= {"4", "5"}  # the file of the other one that died


def test_a_process_killed_while_it_sends_an_outcome_is_noticed(pool: LocalProcesses) -> None:
    """Half an outcome is none: the task is done again, dies again, and the rest goes on."""
    outcomes = dict(pool.unordered(tasks.dies_sending, range(6)))
    assert outcomes.pop(3) == Failed("its process was killed (signal 9)", died=True)
    assert outcomes == {number: number for number in (0, 1, 2, 4, 5)}


def test_what_does_not_travel_is_a_failure(pool: LocalProcesses) -> None:
    """Outcomes and tasks that cannot be pickled fail; an exception that cannot keeps its name and text."""
    outcomes = dict(pool.unordered(tasks.awkward, ["unreadable", "unsendable", "raise", tasks.Unsendable()]))
    texts = {number: outcome.error for number, outcome in outcomes.items() if isinstance(outcome, Failed)}
    assert texts[0].startswith("its outcome cannot be read: invalid literal")
    assert texts[1] == "its outcome cannot be sent: stays here"
    assert texts[2] == "1 and 2"
    assert texts[3] == "it cannot be sent: stays here"
    with pytest.raises(RunError, match="Particular: 1 and 2"):
        outcomes[2].reraise()


def test_a_failure_says_where_it_was_raised(pool: LocalProcesses) -> None:
    """An exception raised again has the traceback of the other process as a note, and its own text."""
    ((_, outcome),) = pool.unordered(lambda task: 1 / task, [0])
    with pytest.raises(ZeroDivisionError) as caught:
        outcome.reraise()
    assert str(caught.value) == "division by zero"
    assert "In another process" in caught.value.__notes__[0]


def test_processes_that_cannot_start_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not started again for ever."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with LocalProcesses(2) as pool, pytest.raises(RunError, match=r"cannot be started: ended \(exit code 1\)"):
        list(pool.unordered(tasks.square, range(4)))


def test_short_work_is_not_worth_processes_unless_their_number_was_chosen() -> None:
    """A number that the user chose is used; else the work decides, until processes have been started."""
    assert LocalProcesses(2).pays(0.001)
    with LocalProcesses(2, chosen=False) as pool:
        assert not pool.pays(0.001)
        assert list(pool.unordered(tasks.square, [2])) == [(0, 4)]
        assert pool.pays(0.001)
    assert not ThisProcess().pays(1e9)


_PROGRAM = """
import signal
import time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets programs in the background ignore it
from simqueue.execution import Failed
from simqueue.execution.local import LocalProcesses

class Own:  # of the main program, without a guard
    def __init__(self, value): self.value = value

def own(task):
    print("begun", flush=True)
    time.sleep(60 if task.value else 0)
    return Own(task.value)

with LocalProcesses(2) as pool:
    assert not isinstance(next(pool.unordered(own, [Own(0)]))[1], Failed)
    list(pool.unordered(own, [Own(1), Own(1)]))
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_however_the_leader_ends(end: signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C goes to all processes of a terminal, a kill to the leader alone: workers end in the middle of a task."""
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    with subprocess.Popen(
        [sys.executable, program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as leader:
        assert leader.stdout is not None
        for _ in range(3):  # two of them run when it ends
            leader.stdout.readline()
        (os.killpg if end == signal.SIGINT else os.kill)(leader.pid, end)
        _, shown = leader.communicate(timeout=20)  # returns when no process has its standard output any more
    assert leader.returncode == -end
    assert shown.count(b"Traceback") == (end == signal.SIGINT), shown.decode()  # none of workers


def test_a_worker_without_a_leader_ends_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it cannot send any more is no error of the worker."""
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    leader, its = Pipe()
    leader.close()
    worker._send(its, b"an answer")
    assert codes == [0]
