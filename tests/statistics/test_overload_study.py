"""The study of overload: its page has what it measures, and its copy of the rule before is that rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from studies.certainty import bounded
from studies.certainty.overload import cells, flagged_before, written
from studies.certainty.queues import per_server, run_of


def test_the_page_has_all_cells(tmp_path: Path) -> None:
    """At a load of 10 every run is flagged, at 0.1 none; shares add up, and the page shows them in per cent."""
    found = list(cells({200: 2}, loads=(0.1, 10.0)))
    assert len(found) == 5 * 2 * 2
    assert all(cell.yes + cell.no + cell.unknown == 1 for cell in found)
    assert {cell.yes for cell in found if cell.load == 10 and cell.kind not in ("sharing", "batching")} == {1.0}
    assert {cell.yes for cell in found if cell.load == 0.1} == {0.0}
    limited = list(bounded.cells(2, loads=(0.5, 10.0)))
    assert {cell.overloaded for cell in limited} == {0.0, 1.0}
    page, figure = written(tmp_path, found, limited)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!-- written by: python -m studies.certainty overload -->")
    assert "| 200 | 1 | **flagged** | 0 | 100 |" in text
    assert "| none may wait | bounded | 100 | 100 |" in text
    assert figure.stat().st_size > 0


def test_the_rule_before_missed_the_worst() -> None:
    """On M/M/1 with 2,000 customers it flags a load of 1.2, neither 0.5 nor 10."""
    rng = np.random.default_rng(3)
    assert [flagged_before(run_of(per_server(1), load, 2000, rng)) for load in (0.5, 1.2, 10.0)] == [False, True, False]
