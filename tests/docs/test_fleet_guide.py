"""The guide to fleets: the router that it shows, by its choices, and what it says about commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

import simqueue as sq
from simqueue.request import Request
from simqueue.routing import ROUTERS, Router

from ..results.fleets import asked, small
from ..routing.replicas import Replica

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "fleets.md").read_text(encoding="utf-8")
REQUEST = Request("r", 0.0, 10, 5)


def code() -> str:
    """Return the Python block."""
    (block,) = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    return str(block)


@pytest.fixture
def roomy() -> Iterator[type[Router]]:
    """Register the router of the guide."""
    with patch.dict(ROUTERS):
        names: dict[str, Any] = {"__name__": "roomy"}
        exec(code(), names)  # noqa: S102 - our own guide
        yield ROUTERS["roomy"]


def test_a_router_of_ones_own_is_short() -> None:
    """The whole program has less than 30 lines."""
    assert len(code().splitlines()) < 30


def test_it_avoids_full_replicas(roomy: type[Router]) -> None:
    """The fewest in flight of those with room; of all that are healthy if none has room."""
    router = roomy(roomy.Settings.model_validate({"full": 0.5}), Random(0))
    views = [Replica(0, in_flight=1, kv_used=0.6), Replica(1, in_flight=3, kv_used=0.5), Replica(2, in_flight=3)]
    down = Replica(3, healthy=False)
    found = router.rank(REQUEST, [*views, down], 0.0)
    assert found.chances == {1: 0.5, 2: 0.5}
    assert found.scores == {"kv": {0: 0.6, 1: 0.5, 2: 0.0}}
    assert router.rank(REQUEST, [views[0], down], 0.0).chances == {0: 1}


def test_it_runs_in_a_scenario(roomy: type[Router]) -> None:
    """Requests at one instant go to both replicas."""
    fleet = {"replicas": 2, "router": {"kind": "roomy", "full": 0.5}}
    requests = sq.run(small(fleet, *[asked(0, 10, 4)] * 4)).requests
    assert sorted(requests["replica"]) == [0, 0, 1, 1]
    assert set(requests["route_reason"]) == {"fewest of those with room"}
    assert roomy.summary in {router.summary for router in ROUTERS.values()}
