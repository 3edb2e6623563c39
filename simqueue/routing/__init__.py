"""Which replica gets a request: one module per family of routers, a contract, a registry."""

from simqueue.routing.aibrix import AiBrix
from simqueue.routing.base import Age, Choice, Ranking, Recovery, Router, Signal, View
from simqueue.routing.central import CentralQueue
from simqueue.routing.dynamo import Dynamo
from simqueue.routing.envoy import Envoy
from simqueue.routing.failures import FleetEvent, InFlight, RandomFailures
from simqueue.routing.gateway import SglangRouter, VllmRouter
from simqueue.routing.least import JoinShortestQueue, LeastKv, LeastOutstanding, LeastTokens
from simqueue.routing.litellm import LiteLlm
from simqueue.routing.llmd import LlmD
from simqueue.routing.nginx import Nginx
from simqueue.routing.plain import RandomChoice, RoundRobin
from simqueue.routing.power import PowerOfTwo
from simqueue.routing.prefix import PrefixAffinity
from simqueue.routing.production_stack import ProductionStack
from simqueue.routing.registry import ROUTERS, router, router_rows
from simqueue.routing.session import SessionAffinity
from simqueue.routing.weighted import Weighted

router("random")(RandomChoice)
router("round_robin")(RoundRobin)
router("weighted")(Weighted)
router("least_outstanding")(LeastOutstanding)
router("least_tokens")(LeastTokens)
router("least_kv")(LeastKv)
router("join_shortest_queue")(JoinShortestQueue)
router("power_of_two")(PowerOfTwo)
router("central_queue")(CentralQueue)
router("session_affinity")(SessionAffinity)
router("prefix_affinity")(PrefixAffinity)
router("dynamo")(Dynamo)
router("litellm")(LiteLlm)
router("sglang-router")(SglangRouter)
router("vllm-router")(VllmRouter)
router("llm-d")(LlmD)
router("production-stack")(ProductionStack)
router("aibrix")(AiBrix)
router("envoy")(Envoy)
router("nginx")(Nginx)

__all__ = [
    "ROUTERS",
    "Age",
    "Choice",
    "FleetEvent",
    "InFlight",
    "RandomFailures",
    "Ranking",
    "Recovery",
    "Router",
    "Signal",
    "View",
    "router",
    "router_rows",
]
