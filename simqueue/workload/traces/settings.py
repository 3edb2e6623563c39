"""The scenario keys of a trace: which file, which part of it, how fast."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.settings import Settings, invalid
from simqueue.workload.traces.base import ReadOptions, TimeUnit
from simqueue.workload.traces.catalog import packaged_trace
from simqueue.workload.traces.formats import FORMATS


class TraceSettings(Settings):
    """Requests from a recorded trace.

    Rows are first put in order of time. Of those in the windows [start_s, end_s) and [start_row, end_row) a share
    `thin` is kept, rows with 0 tokens are dropped, what is left is repeated, and `limit` caps it. Then gaps are divided
    by `rate_scale`.
    """

    format: str | None = Field(
        default=None,
        description="Format of the file at path: " + ", ".join(FORMATS) + ". Not needed with name.",
        json_schema_extra={"enum": [*FORMATS, None]},
    )
    path: str | None = Field(
        default=None, description="The file, relative to the scenario file. Either path or name is needed."
    )
    name: str | None = Field(default=None, description="A packaged trace, see `simqueue list traces`.")
    columns: dict[str, str] | None = Field(
        default=None,
        description="For formats csv and jsonl, columns that the file calls otherwise, such as {arrival_s: time}.",
    )
    time_unit: TimeUnit = Field(default="s", description="For formats csv and jsonl, the unit of the file's times.")
    block_tokens: int | None = Field(
        default=None,
        ge=1,
        description="For format mooncake, how many tokens a hash id stands for (512 in the published files). It need "
        "not be the engine's block size.",
        json_schema_extra={"unit": "tokens"},
    )
    origin: Literal["first_row", "file"] = Field(
        default="first_row",
        description="What is time 0: the first kept row; or the file's own 0 plus start_s (not with absolute dates).",
    )
    rate_scale: float = Field(
        default=1.0, gt=0, description="Gaps between arrivals are divided by this: 2 doubles the rate."
    )
    thin: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Share of rows to keep, chosen at random; the gaps keep their scale. null: all.",
    )
    start_s: float = Field(
        default=0.0,
        ge=0,
        description="Leave out rows before this time, counted from the file's first row in the file's own time.",
        json_schema_extra={"unit": "s"},
    )
    end_s: float | None = Field(
        default=None,
        gt=0,
        description="Leave out rows at and after this time, counted like start_s. null: to the end.",
        json_schema_extra={"unit": "s"},
    )
    start_row: int = Field(
        default=0, ge=0, description="Leave out rows before this one, counted from 0 in order of time."
    )
    end_row: int | None = Field(
        default=None, ge=1, description="Leave out this row and those after it, counted like start_row. null: none."
    )
    spread_s: float | None = Field(
        default=None,
        gt=0,
        description="Spread rows of one timestamp at random over this time after it (at most to the next timestamp), "
        "where a trace counts in coarse bins (3 s in the published Mooncake conversation). null: they arrive together.",
        json_schema_extra={"unit": "s"},
    )
    repeat: int = Field(
        default=1,
        ge=1,
        le=1_000_000,
        description="Play what is left that many times in a row, with new ids and new token identities.",
    )
    duplicate_ids: Literal["fail", "rename"] = Field(
        default="fail", description="A request_id that the file uses twice: fail, or rename the later ones."
    )
    stream: bool = Field(
        default=False,
        description="Read the file piece by piece while it is played, in bounded memory. Rows must be in order of "
        "time, ids are row numbers, and spread_s, repeat and start_row are not available.",
    )
    limit: int | None = Field(
        default=None,
        ge=1,
        description="Stop after this many requests. An error if there are fewer, like num_requests. null: all.",
        json_schema_extra={"unit": "requests"},
    )
    zero_token_rows: Literal["drop", "fail"] = Field(
        default="drop",
        description="Rows with 0 prompt or 0 output tokens (failed calls): drop and count them, or fail.",
    )

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: str | None) -> str | None:
        if value is not None and value not in FORMATS:
            raise invalid(unknown("trace format", value, FORMATS))
        return value

    @field_validator("name")
    @classmethod
    def _known_name(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                packaged_trace(value)
            except InputError as error:
                raise invalid(str(error)) from None
        return value

    @model_validator(mode="after")
    def _one_file(self) -> Self:
        if (self.path is None) == (self.name is None):
            raise invalid("a trace needs exactly one of path (with format), name")
        if self.path is not None and self.format is None:
            raise invalid(f"a trace at a path needs format, one of {', '.join(FORMATS)}")
        if self.name is not None and self.format not in (None, packaged_trace(self.name).format):
            raise invalid(f"trace '{self.name}' has format {packaged_trace(self.name).format}: leave format out")
        return self

    @model_validator(mode="after")
    def _format_allows(self) -> Self:
        read = FORMATS[self.reader_name()]
        if self.origin == "file" and not read.starts_at_zero:
            raise invalid(f"does not go with format {self.reader_name()}, which has absolute dates", "origin")
        if self.time_unit != "s" and not read.renames:
            raise invalid(f"time_unit is for formats csv and jsonl: format {self.reader_name()} has a unit of its own")
        if self.block_tokens is not None and self.reader_name() != "mooncake":
            raise invalid(f"block_tokens is for format mooncake, the format is {self.reader_name()}")
        if self.path is not None and self.reader_name() == "mooncake" and self.block_tokens is None:
            raise invalid("format mooncake needs block_tokens, the tokens of a hash id (512 in the published files)")
        for column in self.columns or {}:
            if column not in read.renames:
                allowed = ", ".join(read.renames) or f"none, format {self.reader_name()} fixes its columns"
                raise invalid(f"columns: '{column}' cannot be renamed; allowed: {allowed}")
        return self

    @model_validator(mode="after")
    def _window(self) -> Self:
        if self.end_s is not None and self.end_s <= self.start_s:
            raise invalid(f"end_s {self.end_s:g} must be after start_s {self.start_s:g}")
        if self.end_row is not None and self.end_row <= self.start_row:
            raise invalid(f"end_row {self.end_row} must be after start_row {self.start_row}")
        return self

    @model_validator(mode="after")
    def _can_be_streamed(self) -> Self:
        if not self.stream:
            return self
        plain = {"spread_s": None, "repeat": 1, "start_row": 0, "end_row": None}
        for key, value in plain.items():
            if getattr(self, key) != value:
                raise invalid(f"{key} does not go with stream: true")
        return self

    @property
    def read_options(self) -> ReadOptions:
        """What the reader has to be told."""
        packaged = None if self.name is None else packaged_trace(self.name).block_tokens
        return ReadOptions(self.columns or {}, self.time_unit, self.block_tokens or packaged)

    def reader_name(self) -> str:
        """Return the format as which the file is to be read."""
        return packaged_trace(self.name).format if self.name is not None else str(self.format)
