"""Fleets against theory: waits by router, the queues of many replicas, and routers that look at old signals.

Each part is a module with ``measured``, which simulates, and ``lines`` and ``draw``, which show what it returned.
"""
