"""The cells of the benchmarks with fleets."""

from __future__ import annotations

import pytest

from benchmarks import traffic
from benchmarks.fleets import KINDS, PREFIXES, FleetCell, all_cells, fleet_cells, name
from benchmarks.ratios import ratios


@pytest.mark.parametrize("router", KINDS)
def test_fleets_of_the_benchmarks_serve_all_requests(router: str) -> None:
    """Behind each router, two replicas serve what is sent to them, and both get some."""
    (cell,) = [one for one in fleet_cells(quick=True) if one.name == name(router, 8)]
    assert isinstance(cell, FleetCell)
    requests = list(traffic.Poisson(40, 20.0, prefixes=PREFIXES * cell.prefix_caching))
    recording = cell.simulation(requests).run()
    assert set(recording.requests["status"]) == {"finished"}
    assert len(set(recording.requests["replica"])) > 1


def test_half_of_a_prompt_is_a_prefix_that_comes_again() -> None:
    """Of 6 requests with 3 prefixes, the first and the fourth begin alike, and the rest of each is its own."""
    made = list(traffic.Poisson(6, 1.0, prefixes=3))
    prompts = [request.prompt or () for request in made]
    assert [prompt[0][0] for prompt in prompts] == [0, 1, 2, 0, 1, 2]
    assert len({prompt[1][0] for prompt in prompts} | {0, 1, 2}) == 9
    for request, prompt in zip(made, prompts, strict=True):
        assert sum(length for _, _, length in prompt) == request.prompt_tokens


def test_fleets_are_compared_with_their_replica() -> None:
    """Every size behind every router has a ratio, which is 3 where a request takes three times as long."""
    rows = [
        {"cell": cell.name, "way": cell.way, "floor_ratio": 90.0 if isinstance(cell, FleetCell) else 30.0}
        for cell in fleet_cells(quick=True)
    ]
    start = {"help_s": 0.1, "validate_s": 0.1, "w1_command_s": 1.0}
    found = [one for one in ratios({"rows": rows, "start_up": start}) if "without a router" in one.name]
    assert [one.value for one in found] == [3.0] * 4 * len(KINDS)
    assert {one.name for one in found if one.limit == "at most 1.6"} == {
        one.name for one in found if ", 64 replicas" in one.name
    }


def test_cells_have_names_of_their_own() -> None:
    """A name and a way say which cell it is."""
    cells = all_cells(quick=True)
    assert len({(cell.name, cell.way) for cell in cells}) == len(cells)
