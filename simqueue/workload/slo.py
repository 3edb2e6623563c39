"""The scenario keys of service level objectives, and which of them limit requests and which limit a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from simqueue.settings import Settings

OF_REQUESTS: Final = ("ttft_ms", "tpot_ms", "itl_ms", "e2el_ms")
"""Limits that each request must meet."""

_OF_RUN: Final = re.compile(r"(mean|median|p(?!0+(?:\.0*)?_)\d{1,2}(?:\.\d+)?)_(ttft|tpot|itl|e2el)_ms")
_SUGGESTED: Final = tuple(f"{kind}_{name}" for kind in ("p99", "p95", "mean") for name in OF_REQUESTS)
_MS: JsonDict = {"unit": "ms"}
_Limit = Annotated[float, Field(gt=0)]


def is_of_run(name: str) -> bool:
    """Return whether a limit is on a mean or a percentile of all requests, such as ``p99_itl_ms``."""
    return _OF_RUN.fullmatch(name) is not None


def of_requests(slo: Mapping[str, float] | None) -> dict[str, float]:
    """Return the limits that each request must meet."""
    return {name: limit for name, limit in (slo or {}).items() if not is_of_run(name)}


def of_run(slo: Mapping[str, float] | None) -> dict[str, float]:
    """Return the limits on means and percentiles."""
    return {name: limit for name, limit in (slo or {}).items() if is_of_run(name)}


class SloSettings(Settings):
    """Limits on latencies; limits that are not given do not count.

    The first four are for each request: a request that meets all of them is good. The others are for a policy's run,
    which meets them or not.
    """

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "additionalProperties": False,
            "patternProperties": {
                f"^{_OF_RUN.pattern}$": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "unit": "ms",
                    "title": "STATISTIC_LATENCY_ms",
                    "description": "limit on a statistic of all requests (of itl: of all gaps between tokens), such as "
                    "`p99_itl_ms` or `mean_ttft_ms`. STATISTIC: `mean`, `median`, or a percentile such as `p90` or "
                    "`p99.9`; LATENCY: `ttft`, `tpot`, `itl` or `e2el`",
                }
            },
        },
    )
    __pydantic_extra__: dict[str, _Limit | None] = Field(init=False)

    ttft_ms: float | None = Field(None, gt=0, description="time to first token, from sending", json_schema_extra=_MS)
    tpot_ms: float | None = Field(
        None, gt=0, description="time per output token after the first", json_schema_extra=_MS
    )
    itl_ms: float | None = Field(
        None, gt=0, description="longest time between two consecutive tokens of the request", json_schema_extra=_MS
    )
    e2el_ms: float | None = Field(None, gt=0, description="end-to-end latency, from sending", json_schema_extra=_MS)

    @property
    def given(self) -> dict[str, float]:
        """The limits that are given, by their key."""
        found: dict[str, float] = self.model_dump(exclude_none=True)
        return found

    @classmethod
    def _has_pattern(cls, key: str) -> bool:
        return is_of_run(key)

    @classmethod
    def _suggested(cls) -> Sequence[str]:
        return _SUGGESTED
