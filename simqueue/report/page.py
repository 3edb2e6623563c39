"""The page of a result: warnings, the comparison, the figures, and the scenario."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from simqueue.figures.activity import kv_and_queue, step_composition, token_gaps
from simqueue.figures.cdf import latency_figure
from simqueue.figures.timeline import batch_timeline
from simqueue.figures.view import first_replication
from simqueue.report.comparison import comparison
from simqueue.report.document import Cells, Code, Document, Heading, Items, Paragraph, Picture
from simqueue.report.text import notes

if TYPE_CHECKING:
    from simqueue.figures.view import ResultView
    from simqueue.report.comparison import Comparison
    from simqueue.report.document import Block

_MOST_REASONS: Final = 20
_MOST_ROWS: Final = 400
_BEST: Final = "Emphasized: the best policies. With replications, those whose interval overlaps with that of the best."
_MOST_POLICIES: Final = 4
"""Largest number of policies with separate figures; the tables and the common figures show all policies."""


def result_page(result: ResultView) -> Document:
    """Return the page of a result, which can be that of a run or one read from its folder."""
    name = str(result.scenario.get("name", "scenario"))
    document = Document(f"simqueue: {name}")
    document.add(Paragraph(f"simqueue {result.version}, seed {result.seed}, {len(result.policies)} policies."))
    if result.warnings:
        document.add(Items(tuple(f"Warning: {line}" for line in result.warnings), role="warning"))
    found = comparison(result)
    document.add(Heading("Comparison"), _comparison(found), *_by_class(found))
    if said := notes(result):
        document.add(Items(tuple(said)))
    document.add(*_rejections(result))
    _add_figures(document, result)
    document.add(Heading("Scenario"), *_resolved(result))
    return document


def _comparison(found: Comparison) -> Cells:
    """Return the table of all requests: one column per policy."""
    rows: list[tuple[str, ...]] = []
    sections, best = {}, set()
    for title, group in found.sections.items():
        sections[len(rows)] = title
        for cells in group:
            best |= {(len(rows), 1 + index) for index in cells.best}
            rows.append((cells.line.titled, *cells.texts))
    numeric = tuple(range(1, len(found.policies) + 1))
    caption = _BEST if best else ""
    return Cells(("", *found.policies), tuple(rows), caption, numeric, sections, frozenset(best))


def _by_class(found: Comparison) -> Iterator[Block]:
    """Yield the table of workloads and request classes: one row per policy below the name of each class."""
    if not found.classes:
        return
    lines = [cells.line for cells in next(iter(found.classes.values()))]
    rows: list[tuple[str, ...]] = []
    sections, best = {}, set()
    for name, group in found.classes.items():
        sections[len(rows)] = name
        best |= {(len(rows) + index, 1 + at) for at, cells in enumerate(group) for index in cells.best}
        rows += [(policy, *(cells.texts[index] for cells in group)) for index, policy in enumerate(found.policies)]
    numeric = tuple(range(1, len(lines) + 1))
    columns = ("", *(line.titled for line in lines))
    yield Heading("By class")
    yield Cells(columns, tuple(rows), _BEST if best else "", numeric, sections, frozenset(best))


def _rejections(result: ResultView) -> list[Cells]:
    """Return a table of the reasons why requests were rejected, one row per policy and reason; none without any."""
    rejected = result.requests[result.requests["status"] == "rejected"]
    if rejected.empty:
        return []
    counted = Counter(zip(rejected["policy"].tolist(), rejected["reject_reason"].tolist(), strict=True))
    rows = [(str(policy), str(why), f"{n:,}") for (policy, why), n in counted.most_common(_MOST_REASONS)]
    return [Cells(("policy", "reason", "requests"), tuple(rows), caption="Rejected requests", numeric=(2,))]


def _add_figures(document: Document, result: ResultView) -> None:
    document.add(Heading("Latency"))
    document.add(Picture(latency_figure(result), "latency", "Distribution of latencies over finished requests."))
    document.add(Heading("Over time"))
    document.add(Picture(kv_and_queue(result), "kv-and-queue", "KV blocks in use and waiting requests."))
    until_s = _first_part_s(result)
    part = "" if until_s is None else f" Only the first {until_s:.3g} s are shown."
    gaps = f"Time between two tokens of a decoding request. A prompt in the same step appears as a spike.{part}"
    around = None if until_s is None else (0.0, until_s)
    document.add(Picture(token_gaps(result, around_s=around), "token-gaps", gaps))
    document.add(Heading("Steps and slots"))
    for policy in result.policies[:_MOST_POLICIES]:
        steps = f"{policy}: prompt tokens and decoding requests of each step.{part}"
        document.add(Picture(step_composition(result, policy, until_s=until_s), f"steps-{policy}", steps))
        slots = f"{policy}: the requests in each slot.{part}"
        document.add(Picture(batch_timeline(result, policy, until_s=until_s), f"slots-{policy}", slots))
    left = len(result.policies) - _MOST_POLICIES
    if left > 0:
        document.add(Paragraph(f"The steps and slots of {left} more policies are not shown."))


def _first_part_s(result: ResultView) -> float | None:
    """Return the end of the part of a run in which single steps are visible; None if they are in the whole run."""
    starts = [table["start_s"].to_numpy() for table in (first_replication(result.steps, p) for p in result.policies)]
    late = [float(start[_MOST_ROWS]) for start in starts if len(start) > _MOST_ROWS]
    return min(late) if late else None


def _resolved(result: ResultView) -> list[Code]:
    """Return the resolved scenario and the origin of each value."""
    blocks = [Code(json.dumps(result.scenario, indent=2, ensure_ascii=False), "Resolved scenario")]
    if result.origins:
        lines = "\n".join(f"{path}: {source}" for path, source in result.origins.items())
        blocks.append(Code(lines, "Origin of each value"))
    return blocks
