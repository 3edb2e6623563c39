"""Where tasks run: in this process, in processes of this machine, or on a cluster."""

from simqueue.execution.choice import check_workers, executor, opened
from simqueue.execution.contract import Executor, Failed

__all__ = ["Executor", "Failed", "check_workers", "executor", "opened"]
