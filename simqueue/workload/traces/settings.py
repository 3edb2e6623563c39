"""The scenario keys of a trace: the file, the part of it, and the rate."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.settings import Settings, invalid
from simqueue.workload.traces.catalog import packaged_trace
from simqueue.workload.traces.formats import FORMATS, WITH_COLUMNS, WITH_HASHES, WITH_UNIT, ReadOptions, TimeUnit


class TraceSettings(Settings):
    """Requests from a recorded trace.

    Rows are first sorted by time. From the windows [start_s, end_s) and [start_row, end_row) a share `thin` is kept,
    rows with 0 tokens are dropped, the rest is repeated, and `limit` cuts it. Then gaps are divided by `rate_scale`.
    """

    format: str | None = Field(
        default=None,
        description="format of the file at path: " + ", ".join(FORMATS) + "; not needed with name",
        json_schema_extra={"enum": [*FORMATS, None]},
    )
    path: str | None = Field(default=None, description="the file, relative to the scenario file; give path or name")
    name: str | None = Field(default=None, description="a packaged trace, see `simqueue list traces`")
    columns: dict[str, str] | None = Field(
        default=None,
        description=f"for formats {WITH_COLUMNS}: the file's own names of columns, such as {{arrival_s: time}}",
    )
    time_unit: TimeUnit | None = Field(
        default=None,
        description=f"for formats {WITH_UNIT}: unit of the times in the file, unless they "
        "are dates. null: ms for mooncake, s for the others",
    )
    block_tokens: int | None = Field(
        default=None,
        ge=1,
        description=f"for formats {WITH_HASHES}: number of tokens that one hash id stands "
        "for; independent of the block size of the engine. null: 16 for bailian; mooncake needs it (512 in the "
        "published files)",
        json_schema_extra={"unit": "tokens"},
    )
    origin: Literal["first_row", "file"] = Field(
        default="first_row",
        description="what is time 0. first_row: the first kept row; file: the file's own time 0 plus start_s (not for "
        "absolute dates)",
    )
    rate_scale: float = Field(
        default=1.0, gt=0, description="gaps between arrivals are divided by this: 2 doubles the rate"
    )
    thin: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="share of rows to keep, chosen at random; the times of the kept rows do not change. null: all",
    )
    start_s: float = Field(
        default=0.0,
        ge=0,
        description="rows before this time are left out; 0 is the first row of the file, before rate_scale",
        json_schema_extra={"unit": "s"},
    )
    end_s: float | None = Field(
        default=None,
        gt=0,
        description="rows at and after this time are left out, counted like start_s; null: to the end",
        json_schema_extra={"unit": "s"},
    )
    start_row: int = Field(
        default=0, ge=0, description="leave out rows before this one, counted from 0 in order of time"
    )
    end_row: int | None = Field(
        default=None, ge=1, description="leave out this row and later ones, counted like start_row; null: to the end"
    )
    spread_s: float | None = Field(
        default=None,
        gt=0,
        description="spread rows with equal timestamps at random over this time (at most to the next timestamp), for "
        "traces with a coarse clock (3 s in the published Mooncake conversation trace). null: they arrive together",
        json_schema_extra={"unit": "s"},
    )
    repeat: int = Field(
        default=1,
        ge=1,
        le=1_000_000,
        description="number of times that the rows are replayed in a row, each time with new ids and new tokens",
    )
    duplicate_ids: Literal["fail", "rename"] = Field(
        default="fail",
        description="what happens if the file uses a request_id twice: an error, or new ids for later rows",
    )
    stream: bool = Field(
        default=False,
        description="read the file during the run, in bounded memory. Rows must be in order of time, ids are row "
        "numbers, and spread_s, repeat and start_row are not available",
    )
    limit: int | None = Field(
        default=None,
        ge=1,
        description="number of requests to take; an error if there are fewer, like num_requests. null: all",
        json_schema_extra={"unit": "requests"},
    )
    zero_token_rows: Literal["drop", "fail"] = Field(
        default="drop",
        description="what happens to rows with 0 prompt or 0 output tokens (failed calls): dropped and counted, or an "
        "error",
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
        name = self.reader_name()
        read = FORMATS[name]
        if self.origin == "file" and not read.starts_at_zero:
            raise invalid(f"cannot be combined with format {name}, which has absolute dates", "origin")
        if self.time_unit is not None and read.unit is None:
            raise invalid(f"only for formats {WITH_UNIT}; the format is {name}", "time_unit")
        if self.block_tokens is not None and not read.hashed:
            raise invalid(f"only for formats {WITH_HASHES}; the format is {name}", "block_tokens")
        if self.path is not None and read.hashed and (self.block_tokens or read.block_tokens) is None:
            raise invalid(f"format {name} needs block_tokens, the tokens per hash id (512 in the files of Mooncake)")
        return self

    @model_validator(mode="after")
    def _columns_can_be_renamed(self) -> Self:
        known = FORMATS[self.reader_name()].renames
        for column in self.columns or {}:
            if column not in known:
                allowed = ", ".join(known) or f"none, the columns of format {self.reader_name()} are fixed"
                raise invalid(f"this column cannot be renamed; allowed: {allowed}", "columns", column)
        return self

    @model_validator(mode="after")
    def _window(self) -> Self:
        if self.end_s is not None and self.end_s <= self.start_s:
            raise invalid(f"must be after start_s, which is {self.start_s:g}", "end_s", value=self.end_s)
        if self.end_row is not None and self.end_row <= self.start_row:
            raise invalid(f"must be after start_row, which is {self.start_row}", "end_row", value=self.end_row)
        return self

    @model_validator(mode="after")
    def _can_be_streamed(self) -> Self:
        if not self.stream:
            return self
        plain = {"spread_s": None, "repeat": 1, "start_row": 0, "end_row": None}
        for key, value in plain.items():
            if getattr(self, key) != value:
                raise invalid("cannot be combined with stream: true", key)
        return self

    @property
    def is_random(self) -> bool:
        """Whether rows or their times are drawn."""
        return self.spread_s is not None or (self.thin is not None and self.thin < 1)

    @property
    def read_options(self) -> ReadOptions:
        """What the reader has to know about the file."""
        read = FORMATS[self.reader_name()]
        packaged = None if self.name is None else packaged_trace(self.name).block_tokens
        return ReadOptions(
            self.columns or {},
            self.time_unit or read.unit or "s",
            self.time_unit is not None,
            self.block_tokens or packaged or read.block_tokens,
        )

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """The columns that a file of this format can have under any name."""
        return FORMATS[self.reader_name()].renames

    def reader_name(self) -> str:
        """Return the format of the file."""
        return packaged_trace(self.name).format if self.name is not None else str(self.format)
