"""Which replica gets a request: one module per family of routers, a contract, a registry."""

from simqueue.routing.base import Age, Choice, Ranking, Recovery, Router, Signal, View
from simqueue.routing.plain import RandomChoice, RoundRobin
from simqueue.routing.registry import ROUTERS, router

router("random")(RandomChoice)
router("round_robin")(RoundRobin)

__all__ = ["ROUTERS", "Age", "Choice", "Ranking", "Recovery", "Router", "Signal", "View", "router"]
