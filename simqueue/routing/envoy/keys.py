"""Scenario keys of Envoy's load balancing, by Envoy's names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from simqueue.settings import Count, Settings, invalid


class EnvoySettings(Settings):
    """Keys of `Envoy`. Weights are those of the fleet's groups; hashes are of the session."""

    lb_policy: Literal["ROUND_ROBIN", "LEAST_REQUEST", "RANDOM", "RING_HASH", "MAGLEV"] = Field(
        "ROUND_ROBIN", description="ROUND_ROBIN and LEAST_REQUEST regard weights; RANDOM does not"
    )
    choice_count: Count = Field(
        2,
        ge=2,
        le=1000,
        description="LEAST_REQUEST with equal weights: random choices of which the least loaded is taken",
    )
    active_request_bias: float = Field(
        1.0,
        ge=0,
        description="LEAST_REQUEST with unequal weights: the weight is divided by (requests + 1) to this power",
    )
    minimum_ring_size: Count = Field(1024, ge=1, le=8_388_608, description="RING_HASH: entries, at least")
    maximum_ring_size: Count = Field(8_388_608, ge=1, le=8_388_608, description="RING_HASH: entries, at most")
    table_size: Count = Field(65537, ge=2, le=5_000_011, description="MAGLEV: entries of the table, a prime number")

    @model_validator(mode="after")
    def _check_sizes(self) -> EnvoySettings:
        if self.minimum_ring_size > self.maximum_ring_size:
            raise invalid(f"must be at most maximum_ring_size ({self.maximum_ring_size})", "minimum_ring_size")
        return self

    @field_validator("table_size")
    @classmethod
    def _check_prime(cls, size: int) -> int:
        if any(size % divisor == 0 for divisor in range(2, int(size**0.5) + 1)):
            raise invalid(f"must be a prime number, is {size}")
        return size
