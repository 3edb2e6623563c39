"""Who runs in the next step: one module a policy, a contract, a registry."""

from simqueue.schedulers.base import Later, Plan, Policy
from simqueue.schedulers.chunked import Chunked
from simqueue.schedulers.continuous import Continuous
from simqueue.schedulers.draft import Draft
from simqueue.schedulers.iteration import IterationPolicy
from simqueue.schedulers.keys import IterationSettings
from simqueue.schedulers.llamacpp import LlamaCpp
from simqueue.schedulers.registry import SCHEDULERS, policy_rows, scheduler
from simqueue.schedulers.static import Static

scheduler("chunked")(Chunked)
scheduler("continuous")(Continuous)
scheduler("llamacpp")(LlamaCpp)
scheduler("static")(Static)

__all__ = [
    "SCHEDULERS",
    "Chunked",
    "Continuous",
    "Draft",
    "IterationPolicy",
    "IterationSettings",
    "Later",
    "LlamaCpp",
    "Plan",
    "Policy",
    "Static",
    "policy_rows",
    "scheduler",
]
