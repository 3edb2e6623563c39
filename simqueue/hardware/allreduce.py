"""How long an all-reduce over the GPUs of a node takes, by the size of the message."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Self

from pydantic import Field, model_validator

from simqueue.settings import Count, Settings, invalid


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Durations of an all-reduce at some message sizes; linear between them.

    Attributes
    ----------
    sizes_bytes : tuple of float
        Message sizes in ascending order, at least two: the state that each GPU gives and receives.
    times_s : tuple of float
        The duration for each size.
    """

    sizes_bytes: tuple[float, ...]
    times_s: tuple[float, ...]

    @classmethod
    def of_link(cls, latency_s: float, s_per_byte: float) -> AllReduce:
        """Return an all-reduce with a latency and a time per byte of the message."""
        return cls((0.0, 1.0), (latency_s, latency_s + s_per_byte))

    def seconds(self, message_bytes: float) -> float:
        """Return the duration for a message.

        A message below the smallest size takes as long as that; beyond the largest size, the last slope continues.
        """
        sizes, times = self.sizes_bytes, self.times_s
        if message_bytes <= sizes[0]:
            return times[0]
        above = min(bisect_right(sizes, message_bytes), len(sizes) - 1)
        slope = (times[above] - times[above - 1]) / (sizes[above] - sizes[above - 1])
        return times[above - 1] + slope * (message_bytes - sizes[above - 1])


class AllReduceSettings(Settings):
    """Measured all-reduces over a number of GPUs of one node."""

    gpus: Count = Field(ge=2, description="number of GPUs")
    sizes_bytes: list[float] = Field(
        min_length=2, description="sizes of the message, in ascending order", json_schema_extra={"unit": "B"}
    )
    times_us: list[float] = Field(
        min_length=2, description="the duration for each size", json_schema_extra={"unit": "us"}
    )

    @model_validator(mode="after")
    def _table(self) -> Self:
        if len(self.sizes_bytes) != len(self.times_us):
            text = f"has {len(self.sizes_bytes)} values, times_us has {len(self.times_us)}: each size needs a duration"
            raise invalid(text, "sizes_bytes")
        if self.sizes_bytes[0] < 0 or any(b <= a for a, b in pairwise(self.sizes_bytes)):
            raise invalid("must be >= 0, and each larger than the one before", "sizes_bytes")
        if min(self.times_us) <= 0:
            raise invalid("must be > 0", "times_us")
        return self

    def measured(self) -> AllReduce:
        """Return the durations in seconds; none exceeds that of a larger message, which can only be a disturbance."""
        falling = accumulate(reversed(self.times_us), min)
        return AllReduce(tuple(self.sizes_bytes), tuple(1e-6 * time for time in reversed(list(falling))))
