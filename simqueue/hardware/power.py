"""Electrical power of a GPU, from what it moves and computes."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from simqueue.settings import Settings


@dataclass(frozen=True, slots=True)
class Power:
    """Power of a GPU that runs steps without pause.

    Attributes
    ----------
    running_w : float
        Whatever the steps are.
    j_per_byte, j_per_flop : float
        Energy of bytes that are moved and of FLOPs, in joules.
    limit_w : float
        At most this: the GPU slows down instead.
    """

    running_w: float
    j_per_byte: float
    j_per_flop: float
    limit_w: float

    def watts(self, seconds: float, moved_bytes: float, flops: float) -> float:
        """Return the mean power during a step."""
        return min(
            self.running_w + (self.j_per_byte * moved_bytes + self.j_per_flop * flops) / seconds,
            self.limit_w,
        )


class PowerSettings(Settings):
    """Measured power of a GPU."""

    running_w: float = Field(
        ge=0,
        le=1e5,
        description="power while steps run without pause, whatever they are",
        json_schema_extra={"unit": "W"},
    )
    pj_per_byte: float = Field(
        ge=0, le=1e6, description="energy of a byte that is moved", json_schema_extra={"unit": "pJ"}
    )
    pj_per_flop: float = Field(ge=0, le=1e6, description="energy of a FLOP", json_schema_extra={"unit": "pJ"})
    limit_w: float = Field(gt=0, le=1e5, description="limit of the GPU's power", json_schema_extra={"unit": "W"})

    def measured(self) -> Power:
        """Return the power, with energies in joules."""
        return Power(self.running_w, 1e-12 * self.pj_per_byte, 1e-12 * self.pj_per_flop, self.limit_w)
