"""The scenario keys of a workload: where requests come from."""

from __future__ import annotations

from typing import Self

from pydantic import Field, field_validator, model_validator

from simqueue.settings import Settings
from simqueue.workload.arrivals import ArrivalSettings
from simqueue.workload.inline import RequestSettings, check_ids
from simqueue.workload.lengths import LengthSettings
from simqueue.workload.refusal import refusal
from simqueue.workload.traces import TraceSettings

_SOURCES = ("arrivals", "trace", "requests")
_ALLOWED_WITH = {
    "arrivals": ("prompt_tokens", "output_tokens", "arrivals_for_s", "num_requests"),
    "trace": ("num_requests",),
    "requests": (),
}
_MORE_KEYS = _ALLOWED_WITH["arrivals"]


class WorkloadSettings(Settings):
    """Where requests come from: exactly one of arrivals (with lengths), a trace, or a list."""

    arrivals: ArrivalSettings | None = Field(default=None, description="When requests arrive.")
    prompt_tokens: LengthSettings | None = Field(
        default=None, description="How long prompts are.", json_schema_extra={"unit": "tokens"}
    )
    output_tokens: LengthSettings | None = Field(
        default=None, description="How long outputs are.", json_schema_extra={"unit": "tokens"}
    )
    arrivals_for_s: float | None = Field(
        default=None,
        gt=0,
        description="Requests arrive strictly before this time. With num_requests: whichever comes first.",
        json_schema_extra={"unit": "s"},
    )
    num_requests: int | None = Field(
        default=None,
        ge=1,
        description="How many requests arrive. More than a trace has rows is an error.",
        json_schema_extra={"unit": "requests"},
    )
    trace: TraceSettings | None = Field(default=None, description="Requests from a recorded trace.")
    requests: tuple[RequestSettings, ...] | None = Field(
        default=None, strict=False, description="Requests listed one by one."
    )

    @field_validator("requests")
    @classmethod
    def _unique_ids(cls, value: tuple[RequestSettings, ...] | None) -> tuple[RequestSettings, ...] | None:
        check_ids(value or ())
        return value

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [key for key in _SOURCES if getattr(self, key) is not None]
        if len(given) != 1:
            found = " and ".join(given) if given else "none"
            raise refusal(f"a workload needs exactly one of {', '.join(_SOURCES)}; found: {found}")
        source = given[0]
        for key in _MORE_KEYS:
            if getattr(self, key) is not None and key not in _ALLOWED_WITH[source]:
                raise refusal(f"{key} does not go with {source}{self._instead(source, key)}")
        return self

    @staticmethod
    def _instead(source: str, key: str) -> str:
        if source == "trace" and key == "arrivals_for_s":
            return "; cut a trace with trace.end_s or trace.limit"
        return f", which {'have' if source == 'requests' else 'has'} their own" if key.endswith("tokens") else ""

    @model_validator(mode="after")
    def _complete_arrivals(self) -> Self:
        if self.arrivals is None:
            return self
        missing = [key for key in ("prompt_tokens", "output_tokens") if getattr(self, key) is None]
        if missing:
            raise refusal(
                f"arrivals need {' and '.join(missing)}: a length law, such as {{distribution: constant, value: 100}}"
            )
        complaint = self.arrivals.complaint(self.num_requests, self.arrivals_for_s)
        if complaint is not None:
            raise refusal(complaint)
        return self
