"""Figures of fleets, against counts and parts that are worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import simqueue as sq
from simqueue.figures.canvas import image
from simqueue.figures.fleetload import imbalance_over_time, requests_at
from simqueue.figures.fleetrequests import BANDS, parts_by_band
from simqueue.figures.plots import OF_FLEETS
from simqueue.figures.view import busiest_replica, fleets_of, steps_of_one
from simqueue.report.page import result_page
from simqueue.results.result import Result
from simqueue.results.stored import read_result

from ..results.fleets import asked, small

FAILS = [{"at_s": 0.3125, "replica": "replica-1", "event": "fail", "repair_s": 0.6875}]


@pytest.fixture(scope="module")
def failing() -> Result:
    """One request of 16 steps at the first replica; 4 tokens at the second, which fails and whose request is lost."""
    fleet = {"replicas": 2, "router": "round_robin", "events": FAILS, "in_flight": "lose"}
    scenario = small(fleet, asked(0, 10, 16), asked(0, 40, 4))
    scenario["policies"]["alone"] = {"scheduler": "continuous"}
    return sq.run(scenario)


def test_requests_are_counted_while_a_replica_is_up(failing: Result) -> None:
    """Parts of half a second: two whole steps before the failure at 0.3125 s, down to 1 s, and nothing after that."""
    found = requests_at(failing, "p", np.linspace(0, 2, 5))
    assert found[0] == pytest.approx([1, 1, 1, 1])
    assert found[1][0] == pytest.approx(0.25 / 0.3125)
    assert np.isnan(found[1][1])
    assert list(found[1][2:]) == [0, 0]


def test_requests_that_wait_count_too() -> None:
    """Three requests of 4 steps at a replica with two seats: three for half a second, and then one."""
    result = sq.run(small({"replicas": 2, "router": "round_robin"}, *[asked(0, 10, 4)] * 5))
    assert requests_at(result, "p", np.array([0, 0.5, 1])).tolist() == [[3, 1], [2, 0]]


def test_imbalance_is_the_most_over_the_mean_of_those_that_are_up(failing: Result) -> None:
    """One line per fleet: 1 while only one replica is up, and 2 while one of two works."""
    (ax,) = imbalance_over_time(failing).axes
    line = next(line for line in ax.lines if len(np.atleast_1d(line.get_xdata())) > 2)
    times_s, ratio = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    assert ratio[(times_s > 0.4) & (times_s < 0.9)] == pytest.approx(1)
    assert ratio[times_s > 1.1] == pytest.approx(2)


def test_parts_of_a_wait_add_up_to_it() -> None:
    """The first token of each request, in parts: bands have the fastest half, and so on, of 100 requests."""
    n = np.arange(100.0)
    table = pd.DataFrame(
        {
            "status": "finished",
            "arrival_s": n,
            "router_ms": 5.0,
            "failed_attempts_ms": 7.0,
            "first_scheduled_s": n + 0.025,
            "ttft_ms": 30.0 + n[::-1],
        }
    )
    found = parts_by_band(table)
    assert found[:, 0] == pytest.approx([5] * 4)
    assert found[:, 1] == pytest.approx([7] * 4)
    assert found[:, 2] == pytest.approx([13] * 4)
    ranks = [range(100 * low // 100, high) for low, high in BANDS]
    assert found.sum(axis=1) == pytest.approx([30 + np.mean(own) for own in ranks])
    assert not parts_by_band(table.assign(status="rejected")).any()


def test_parts_with_a_router_that_takes_time() -> None:
    """One request: 0.25 s at the router, no queue, and one step."""
    fleet = {"replicas": 2, "router_time": {"request_ms": 250}}
    found = parts_by_band(sq.run(small(fleet, asked(0, 10, 2))).requests)
    assert found.sum(axis=0) == pytest.approx([250, 0, 0, 125])


def test_failed_attempts_are_no_queue() -> None:
    """At 0.3 s the first replica fails; the request is sent again 0.5 s later, to one that is free: no queue."""
    fleet = {
        "replicas": 2,
        "events": [{"at_s": 0.3, "replica": "replica-0", "event": "fail"}],
        "in_flight": "restart",
        "retries": {"limit": 3, "wait_ms": 500, "factor": 1, "longest_ms": 500, "jitter": 0},
    }
    found = parts_by_band(sq.run(small(fleet, asked(0, 10, 4))).requests)
    assert found.sum(axis=0) == pytest.approx([0, 800, 0, 125])


def test_steps_are_those_of_the_busiest_replica(failing: Result) -> None:
    """Figures of single steps show one replica, so that rows are in order of time; other policies have all."""
    assert list(fleets_of(failing)) == ["p"]
    assert (busiest_replica(failing, "p"), busiest_replica(failing, "alone")) == (0, None)
    assert set(steps_of_one(failing, "p")["replica"]) == {0}
    figure = failing.plot("kv_and_queue")
    blocks = {line.get_label(): np.asarray(line.get_ydata()) for line in figure.axes[0].lines}
    assert max(values.max() for values in blocks.values()) == 4  # 1 block and 3, at both replicas together


def test_figures_are_drawn_for_fleets_and_not_without(failing: Result, tmp_path: Path) -> None:
    """A saved result has the files, and its page the pictures, also when it was read back."""
    names = {path.stem for path in failing.save(tmp_path / "out")}
    assert names & set(OF_FLEETS) == set(OF_FLEETS) - {"prefix_hits"}
    stored = read_result(tmp_path / "out")
    for draw in OF_FLEETS.values():
        assert image(draw(stored), "png") == image(draw(failing), "png")
    pictures = {picture.name for picture in result_page(stored).pictures}
    assert {"replica-load", "imbalance", "ttft-parts"} <= pictures
    assert "prefix-hits" not in pictures
    alone: Any = sq.run(small(None, asked(0, 10, 4)))
    assert not {"replica-load", "imbalance"} & {picture.name for picture in result_page(alone).pictures}
    assert not set(OF_FLEETS) & {path.stem for path in alone.save(tmp_path / "alone")}


def test_prefix_hits_are_drawn_where_there_are_any(tmp_path: Path) -> None:
    """Two equal prompts at the first replica: the second finds two of its three blocks. The third is at the other."""
    given = [{"arrival_s": at_s, "prompt": [[1, 0, 48]], "output_tokens": 1} for at_s in (0, 1, 2)]
    result = sq.run(small({"replicas": 2}, *given, kv_cache={"blocks": 10, "block_size": 16, "prefix_caching": True}))
    assert list(result.replicas["prefix_hit_rate"]) == pytest.approx([32 / 96, 0])
    (ax,) = result.plot("prefix_hits").axes
    assert [bar.get_height() for bar in ax.patches] == pytest.approx([100 * 32 / 96, 0])
    assert "prefix_hits" in {path.stem for path in result.save(tmp_path / "out")}


def test_figures_say_that_there_is_no_fleet() -> None:
    """They can be asked for in any case."""
    alone = sq.run(small(None, asked(0, 10, 4)))
    for name in OF_FLEETS:
        assert image(alone.plot(name), "png")
