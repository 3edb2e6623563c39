"""Where tasks run: in this process, in processes of this machine, or on a cluster."""

from simqueue.execution.choice import executor, opened
from simqueue.execution.contract import Executor, Failed, Workers
from simqueue.execution.here import ThisProcess
from simqueue.execution.inorder import in_order

__all__ = ["Executor", "Failed", "ThisProcess", "Workers", "executor", "in_order", "opened"]
