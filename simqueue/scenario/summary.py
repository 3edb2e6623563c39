"""Scenario keys of the summary: which percentiles it has, and which latencies the comparison shows."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from simqueue.settings import Settings, invalid

Percentile = Annotated[float, Field(gt=0, lt=100)]
LatencyName = Literal["ttft", "tpot", "itl", "e2el"]


class SummarySettings(Settings):
    """What the summary has besides its usual columns, and which latencies the table and the page show."""

    percentiles: tuple[Percentile, ...] | None = Field(
        None,
        strict=False,
        description="percentiles of latencies that the table and the page show, such as [50, 90, 99]. The summary has "
        "columns of them, besides those of 50, 95 and 99. null: a selection",
    )
    metrics: tuple[LatencyName, ...] | None = Field(
        None,
        strict=False,
        description="latencies that the table and the page show, each with its mean and its percentiles. null: all",
    )

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        for key in ("percentiles", "metrics"):
            if getattr(self, key) == ():
                raise invalid("must have at least 1 entry", key)
        return self
