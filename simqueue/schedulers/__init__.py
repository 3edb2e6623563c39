"""Which requests run in the next step: one module per policy, a contract, a registry."""

from simqueue.schedulers.base import Batching, Later, Plan, Policy
from simqueue.schedulers.chunked import Chunked
from simqueue.schedulers.continuous import Continuous
from simqueue.schedulers.iteration import IterationPolicy
from simqueue.schedulers.keys import IterationSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.schedulers.llamacpp import LlamaCpp
from simqueue.schedulers.registry import SCHEDULERS, policy_rows, scheduler
from simqueue.schedulers.static import Static
from simqueue.schedulers.step import Step
from simqueue.schedulers.waiting import ByKey, FirstComeFirstServed, WaitingQueue

scheduler("chunked")(Chunked)
scheduler("continuous")(Continuous)
scheduler("llamacpp")(LlamaCpp)
scheduler("static")(Static)

__all__ = [
    "SCHEDULERS",
    "Batching",
    "ByKey",
    "Chunked",
    "Continuous",
    "FirstComeFirstServed",
    "IterationPolicy",
    "IterationSettings",
    "Later",
    "LlamaCpp",
    "Plan",
    "Policy",
    "RequestLimits",
    "Static",
    "Step",
    "WaitingQueue",
    "policy_rows",
    "scheduler",
]
