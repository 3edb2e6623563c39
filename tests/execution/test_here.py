"""Tasks in this process: outcomes in the order of the tasks, pulled one by one, failures as outcomes."""

from __future__ import annotations

import itertools
import sys

import pytest

from simqueue.errors import InputError, RunError
from simqueue.execution import Failed, executor, in_order, opened
from simqueue.execution.contract import Executor
from simqueue.execution.here import ThisProcess

from ..helpers.backwards import Backwards


def _inverse(number: int) -> float:
    if number == 7:
        raise InputError("no seven", "workload", "seven", value=7)
    return 1 / number


def test_a_task_is_pulled_when_its_outcome_is_asked_for() -> None:
    """Tasks can be endless: only as many are done as outcomes are taken."""
    pulled = []
    tasks = (pulled.append(number) or number for number in itertools.count(1))
    with executor(workers=1) as where:
        outcomes = where.unordered(_inverse, tasks)
        assert list(itertools.islice(outcomes, 3)) == [(0, 1.0), (1, 0.5), (2, 1 / 3)]
    assert pulled == [1, 2, 3]


def test_a_failure_is_an_outcome_and_can_be_raised_again() -> None:
    """An exception of a task ends no other; raised again, it has its type, its text and its problems."""
    with executor(workers=1) as where:
        outcomes = dict(where.unordered(_inverse, [0, 7, 1]))
    assert outcomes[2] == 1.0
    zero, seven = outcomes[0], outcomes[1]
    assert isinstance(zero, Failed)
    assert (zero.kind, zero.died) == ("ZeroDivisionError", False)
    with pytest.raises(ZeroDivisionError):
        zero.reraise()
    assert isinstance(seven, Failed)
    with pytest.raises(InputError, match=r"workload\.seven = 7: no seven"):
        seven.reraise()


def test_an_exit_ends_its_task_only() -> None:
    """`SystemExit` of a task is its failure."""
    with executor(workers=1) as where:
        ((_, first), (_, second)) = where.unordered(lambda task: sys.exit(task) if task else task, [3, 0])
    assert second == 0
    assert isinstance(first, Failed)
    with pytest.raises(RunError, match="SystemExit: exit with 3"):
        first.reraise()


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_a_number_of_workers_is_a_whole_number(workers: object) -> None:
    """Anything else is an error in one line."""
    with pytest.raises(InputError, match="must be a whole number >= 1"):
        executor(workers=workers)  # type: ignore[arg-type]  # what a caller can get wrong


def test_a_cluster_has_its_own_number_of_workers() -> None:
    """A number of processes and a cluster exclude each other."""
    with pytest.raises(InputError, match="its own number of workers"):
        executor(workers=2, dask="tcp://127.0.0.1:1")


@pytest.mark.parametrize("where", [ThisProcess(), Backwards()])
def test_in_order_the_first_failure_is_raised(where: Executor) -> None:
    """Whatever is done first: what comes before the first task that failed is yielded, and then its error is raised."""
    outcomes = in_order(where, _inverse, [4, 2, 7, 5, 0, 1], "inverse")
    assert [next(outcomes), next(outcomes)] == [0.25, 0.5]
    with pytest.raises(InputError, match="no seven"):
        next(outcomes)


def test_an_executor_is_given_instead_of_a_number() -> None:
    """One that the caller has opened is used, and stays open."""
    with executor(workers=1) as mine, opened(mine) as where:
        assert where is mine
    with opened(1) as where:
        assert where.workers == 1
