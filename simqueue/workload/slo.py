"""Service level objectives: of a scenario, a workload or a class."""

from __future__ import annotations

from pydantic import Field

from simqueue.settings import Settings


class SloSettings(Settings):
    """Limits that a request must meet to count as goodput; limits that are not given do not count."""

    ttft_ms: float | None = Field(None, gt=0, description="time to first token", json_schema_extra={"unit": "ms"})
    tpot_ms: float | None = Field(
        None, gt=0, description="time per output token after the first", json_schema_extra={"unit": "ms"}
    )
    e2el_ms: float | None = Field(None, gt=0, description="end-to-end latency", json_schema_extra={"unit": "ms"})
