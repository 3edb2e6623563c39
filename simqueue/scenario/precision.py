"""Scenario keys of replications that continue until a mean is known well enough."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from simqueue.errors import Problem
from simqueue.names import unknown
from simqueue.settings import Settings

PRECISION_METRICS = (
    *(f"{s}_{m}_ms" for m in ("ttft", "tpot", "itl", "e2el") for s in ("mean", "median", "p95", "p99")),
    *(
        "mean_queue_ms",
        "mean_client_wait_ms",
        "request_throughput",
        "output_throughput",
        "total_token_throughput",
        "request_goodput",
    ),
)
"""Columns of the summary that can be compared, and that replications can be made precise for."""


class PrecisionSettings(Settings):
    """Replicate until the mean of a metric is known well enough for every policy."""

    metric: str = Field("mean_ttft_ms", description="column of the summary")
    relative: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="maximum relative error: neither side of the confidence interval is longer than "
        "relative / (1 + relative) of the value",
    )
    confidence: float = Field(0.95, gt=0, lt=1, description="nominal coverage of the confidence interval")
    min_replications: int = Field(10, ge=2, description="minimum number of replications")
    max_replications: int = Field(200, ge=2, le=10_000, description="maximum number of replications")

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the keys together."""
        if self.min_replications > self.max_replications:
            text = f"must be at most max_replications, which is {self.max_replications}"
            yield Problem(("precision", "min_replications"), text)
        if self.metric not in PRECISION_METRICS:
            yield Problem(("precision", "metric"), unknown("metric", self.metric, PRECISION_METRICS))
