"""Compares recordings of real programs with this package: ``python -m simqueue.conformance FILE...``.

A recording is a JSON file with the decisions of an engine's scheduler (`schedules`) or of a router (`routing`). For
each file one line is printed: ``ok``, or the first difference.
"""

from simqueue.conformance.command import main
from simqueue.conformance.routing import first_difference as first_routing_difference
from simqueue.conformance.schedules import first_difference

__all__ = ["first_difference", "first_routing_difference", "main"]
