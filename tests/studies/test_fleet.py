"""The study of fleets: what it computes from runs, by hand, and its page from few and short ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simqueue.statistics.intervals import Estimate
from studies.fleet import __main__ as command
from studies.fleet import herding, queues, waits
from studies.fleet.exact import SERVICE_S, Played, Size, played


def test_shares_of_time_with_at_least_k_requests() -> None:
    """Of two replicas, one has one request for 4 s of the 8 s after the warm-up and two for 2 s; the other has none."""
    run = Played(
        arrival_s=np.array([1.0, 4.0, 10.0]),
        start_s=np.array([1.0, 6.0, 10.0]),
        end_s=np.array([6.0, 8.0, 11.0]),
        replica=np.array([1, 1, 1]),
        warmup_s=2.0,
    )
    assert queues.tails(run, 2)[:3] == pytest.approx([6 / 16, 2 / 16, 0])


def test_the_mean_wait_is_that_after_the_warm_up() -> None:
    """Waits of 2 and 0 services count, one that began earlier does not."""
    start_s = np.array([9.0, 5 + 2 * SERVICE_S, 6.0])
    assert Played(np.array([1.0, 5.0, 6.0]), start_s, start_s, start_s, 5.0).mean_wait == pytest.approx(1)


def test_the_age_at_which_a_random_split_is_as_good() -> None:
    """Between half and twice the wait of a random split it is half of the way, on logarithmic axes."""
    level = herding.at_random(0.5)

    def point(age: float | None, wait: float) -> herding.Point:
        return herding.Point(0.5, age, "the shortest", Estimate(wait, None, None, None, 1))

    assert herding.crossing([point(1, level / 2), point(4, 2 * level)], 0.5, "the shortest") == pytest.approx(2)
    assert herding.crossing([point(1, level / 2), point(4, level / 3)], 0.5, "the shortest") is None


def test_replications_have_traffic_of_their_own() -> None:
    """The same replication is the same again, and another one differs."""
    fleets = {"p": {"replicas": 2, "router": "random"}}
    once, again = (played(fleets, 0.5, Size(20, 2))["p"] for _ in range(2))
    assert [run.mean_wait for run in once] == [run.mean_wait for run in again]
    assert once[0].mean_wait != once[1].mean_wait


def test_the_page_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page names its command, has a section for each part, and figures that are there."""
    monkeypatch.setattr(waits, "LINE", (0.4, 0.6))
    monkeypatch.setattr(waits.measured, "__defaults__", (Size(20, 2), (0.5,), 1))
    monkeypatch.setattr(queues.measured, "__defaults__", (Size(20, 2), 4, 1))
    monkeypatch.setattr(herding.measured, "__defaults__", (Size(20, 2), (0.5,), (1.0, 8.0), 1))
    files = command.write(tmp_path, small=True)
    text = files[0].read_text(encoding="utf-8")
    assert "python -m studies.fleet" in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Waits by router",
        "## Queues of many replicas",
        "## Old signals",
    ]
    for figure in files[1:]:
        assert f"({figure.relative_to(tmp_path)})" in text
        assert figure.stat().st_size > 10_000
