"""The page of a result: warnings, the comparison, the figures, and the scenario."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from simqueue.figures.activity import kv_and_queue, step_composition, token_gaps
from simqueue.figures.arrivals import arrivals_and_capacity, has_rushes
from simqueue.figures.cdf import latency_figure
from simqueue.figures.fleetload import imbalance_over_time, replica_load
from simqueue.figures.fleetrequests import has_prefix_hits, prefix_hits, ttft_parts
from simqueue.figures.overtime import over_time
from simqueue.figures.timeline import batch_timeline
from simqueue.figures.view import fleets_of
from simqueue.figures.window import busiest_window
from simqueue.report.comparison import comparison
from simqueue.report.document import Cells, Code, Document, Heading, Items, Paragraph, Picture, Terms
from simqueue.report.facts import facts
from simqueue.report.glossary import FLEET_GLOSSARY, GLOSSARY
from simqueue.report.groups import group_cells
from simqueue.report.text import notes

if TYPE_CHECKING:
    from simqueue.figures.view import ResultView
    from simqueue.figures.window import Window
    from simqueue.report.comparison import Comparison
    from simqueue.report.document import Block

_MOST_REASONS: Final = 20
_BEST: Final = "Emphasized: the best policies. With replications, those whose interval overlaps with that of the best."
_MOST_POLICIES: Final = 4
"""Largest number of policies with separate figures; the tables and the common figures show all policies."""


def result_page(result: ResultView, window: Window | None = None) -> Document:
    """Return the page of a result.

    Parameters
    ----------
    result : ResultView
        Of a run, or read from its folder.
    window : (float, float), optional
        The part of the run that figures of single steps show, in seconds; by default the busiest one.
    """
    name = str(result.scenario.get("name", "scenario"))
    document = Document(f"simqueue: {name}")
    document.add(Paragraph(f"simqueue {result.version}, seed {result.seed}, {len(result.policies)} policies."))
    document.add(Terms(facts(result)))
    if result.warnings:
        document.add(Items(tuple(f"Warning: {line}" for line in result.warnings), role="warning"))
    found = comparison(result)
    document.add(Heading("Comparison"), _comparison(found), *_by_class(found), *group_cells(result))
    if said := notes(result):
        document.add(Items(tuple(said)))
    terms = GLOSSARY | FLEET_GLOSSARY if result.group_rows else GLOSSARY
    document.add(Terms(terms, "What the terms mean"))
    document.add(*_rejections(result))
    _add_figures(document, result, window)
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


def _add_figures(document: Document, result: ResultView, window: Window | None) -> None:
    document.add(Heading("Latency"))
    latency = "Above: share of finished requests (ITL: of gaps between tokens) at or below x. Below: share above x."
    document.add(Picture(latency_figure(result), "latency", latency))
    shown = window or busiest_window(result)
    document.add(Heading("Over time"))
    document.add(Picture(kv_and_queue(result, mark=shown), "kv-and-queue", "KV blocks in use and waiting requests."))
    if has_rushes(result):
        rates = "Rate of arrivals against the capacity of each policy. Shaded: more arrives than can be served."
        document.add(Picture(arrivals_and_capacity(result), "arrivals", rates))
    if result.replicated:
        means = "Means over the replications, with intervals of each moment (dark) and of all moments at once (light)."
        document.add(Picture(over_time(result), "means-over-time", means))
    part = "" if shown is None else f" From {shown[0]:,.4g} to {shown[1]:,.4g} s"
    part += "" if not part else "." if window else ", the busiest part of the run."
    gaps = f"Time between two tokens of a decoding request. A prompt in the same step appears as a spike.{part}"
    document.add(Picture(token_gaps(result, window=shown), "token-gaps", gaps))
    _add_fleets(document, result)
    document.add(Heading("Steps and slots"))
    for policy in result.policies[:_MOST_POLICIES]:
        steps = f"{policy}: prompt tokens and decoding requests of each step.{part}"
        document.add(Picture(step_composition(result, policy, window=shown), f"steps-{policy}", steps))
        slots = f"{policy}: the requests in each slot.{part}"
        document.add(Picture(batch_timeline(result, policy, window=shown), f"slots-{policy}", slots))
    left = len(result.policies) - _MOST_POLICIES
    if left > 0:
        document.add(Paragraph(f"The steps and slots of {left} more policies are not shown."))


def _add_fleets(document: Document, result: ResultView) -> None:
    """Add the figures of fleets of more than one replica."""
    if not fleets_of(result):
        return
    document.add(Heading("Replicas"))
    load = "The requests that run or wait at each replica. Grey: it is not there, or down. First replication."
    document.add(Picture(replica_load(result), "replica-load", load))
    unequal = "The most requests at a replica over the mean of those that are up. 1 is perfect balance."
    document.add(Picture(imbalance_over_time(result), "imbalance", unequal))
    if has_prefix_hits(result):
        hits = "The share of looked-up prompt tokens that each replica found in its prefix cache."
        document.add(Picture(prefix_hits(result), "prefix-hits", hits))
    parts = "Where the time to the first token goes: means over the requests between percentiles of their own TTFT."
    document.add(Picture(ttft_parts(result), "ttft-parts", parts))


def _resolved(result: ResultView) -> list[Code]:
    """Return the resolved scenario and the origin of each value."""
    blocks = [Code(json.dumps(result.scenario, indent=2, ensure_ascii=False), "Resolved scenario")]
    if result.origins:
        lines = "\n".join(f"{path}: {source}" for path, source in result.origins.items())
        blocks.append(Code(lines, "Origin of each value"))
    return blocks
