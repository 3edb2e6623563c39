"""Rates of grouped matrix products, which compute all routed experts of a layer in one kernel."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from simqueue.hardware.precision import WeightFormat
from simqueue.settings import Settings


@dataclass(frozen=True, slots=True)
class GroupedGemm:
    """How fast a GPU computes the routed experts of a layer, for one format of their weights.

    Attributes
    ----------
    bandwidth_share : float
        Share of the peak bandwidth at which the experts that tokens are routed to, and their activations, are read.
    mfu : float
        Share of the dense peak that their matrix products reach.
    overlap_exponent : float
        How well reading and computing overlap: hardly at 1, fully for large values.
    layer_us : float
        Time per layer for routing, sorting of tokens, and launches, in microseconds.
    """

    bandwidth_share: float
    mfu: float
    overlap_exponent: float
    layer_us: float


class GroupedGemmSettings(Settings):
    """Measured grouped matrix products for one format of the experts' weights."""

    weights: WeightFormat = Field(description="format of the experts' weights")
    bandwidth_share: float = Field(
        ge=0.001, le=1, description="share of the peak bandwidth at which experts and their activations are read"
    )
    mfu: float = Field(
        ge=0.001,
        le=1,
        description="share of the dense peak that matrix products of experts reach; fp4 counts from the bf16 peak",
    )
    overlap_exponent: float = Field(
        ge=1, le=50, description="how well reading and computing experts overlap; 1: not at all"
    )
    layer_us: float = Field(
        ge=0,
        le=1e5,
        description="routing, sorting of tokens and launches per layer with experts",
        json_schema_extra={"unit": "us"},
    )

    def measured(self) -> GroupedGemm:
        """Return the rates."""
        return GroupedGemm(self.bandwidth_share, self.mfu, self.overlap_exponent, self.layer_us)
