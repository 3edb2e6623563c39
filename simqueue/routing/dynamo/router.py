"""The router of NVIDIA Dynamo."""

from __future__ import annotations

from typing import ClassVar

from simqueue.routing.base import Recovery, Router
from simqueue.routing.dynamo.keys import DynamoSettings
from simqueue.routing.dynamo.kv import KvRouter
from simqueue.routing.least import LeastOutstanding, TieSettings
from simqueue.routing.plain import NoKeys, RandomChoice, RoundRobin
from simqueue.routing.power import PowerOfTwo, PowerSettings
from simqueue.routing.several import Several


class Dynamo(Several):
    """Dynamo's KV router and its simple modes."""

    Settings = DynamoSettings
    settings: DynamoSettings
    summary: ClassVar[str] = "NVIDIA Dynamo: the least work added, by cache and open work; and its simple modes"
    checked: ClassVar[str] = "kv: recorded decisions of 1.6.1; other modes: source"
    recovery: ClassVar[Recovery] = Recovery(retries=0, source="ai-dynamo, from memory")
    wants_first_tokens: ClassVar[bool] = True

    def made(self) -> Router:
        """Return the policy of `router_mode`."""
        mode = self.settings.router_mode
        if mode == "kv":
            return KvRouter(self.settings, self.random)
        if mode == "round-robin":
            return RoundRobin(NoKeys(), self.random)
        if mode == "random":
            return RandomChoice(NoKeys(), self.random)
        if mode == "power-of-two":
            return PowerOfTwo(PowerSettings(choices=2, by="in_flight"), self.random)
        return LeastOutstanding(TieSettings(ties="random"), self.random)
