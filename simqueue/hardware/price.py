"""What a GPU costs to rent: an example, with its date. Prices are the user's own business."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from simqueue.datafiles.limits import MOST_KEYS
from simqueue.settings import Settings

Usd = Annotated[float, Field(gt=0, le=1e6)]
"""USD per hour of one GPU."""
UsdPerGpuHour = Usd | Annotated[dict[str, Usd], Field(min_length=1, max_length=MOST_KEYS)]
"""The key `usd_per_gpu_hour`: the price of the GPU beside it, or prices by name of GPU."""


@dataclass(frozen=True, slots=True)
class Price:
    """A price of one GPU.

    Attributes
    ----------
    usd_per_hour : float
    month : str or None
        When it was asked, such as ``2026-05``; None: not said.
    """

    usd_per_hour: float
    month: str | None = None


class PriceSettings(Settings):
    """What one GPU costs to rent."""

    usd_per_hour: float = Field(gt=0, le=1e6, description="price of one GPU", json_schema_extra={"unit": "USD/hour"})
    month: str | None = Field(
        default=None, pattern=r"^\d{4}-(0[1-9]|1[0-2])$", description="when this was the price, such as 2026-05"
    )

    def known(self) -> Price:
        """Return the price."""
        return Price(self.usd_per_hour, self.month)
