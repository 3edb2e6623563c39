"""The two tasks of a course module on continuous batching and chunked prefill, with the module's own interfaces.

`Req` and `simulate` are the scheduler task. `bench` is the task in torch; it needs the extra ``torch``.
"""

from simqueue.module08.bench import BENCH_POLICIES, BenchPolicy, bench
from simqueue.module08.scheduler import MS_PER_S, POLICIES, STEP_COST, PolicyName, Req, simulate

__all__ = [
    "BENCH_POLICIES",
    "MS_PER_S",
    "POLICIES",
    "STEP_COST",
    "BenchPolicy",
    "PolicyName",
    "Req",
    "bench",
    "simulate",
]
