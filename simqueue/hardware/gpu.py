"""An accelerator: how much memory it reports, how fast it reads it, how fast it multiplies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pydantic import Field, model_validator

from simqueue.hardware.precision import WeightFormat
from simqueue.settings import Count, Settings, invalid

MIB = 2**20
GB = 1e9


@dataclass(frozen=True, slots=True)
class Gpu:
    """One accelerator.

    Attributes
    ----------
    name : str
        Its name in the library, or the one given inline.
    memory_bytes : int or None
        What the driver reports, not the round figure it is sold under; None where nobody said.
    bandwidth_bytes_per_s : float
        Peak memory bandwidth.
    flops_per_s : float
        Dense peak (no sparsity) in bf16.
    description : str
        One line for people.
    fp8_flops_per_s, fp4_flops_per_s : float or None
        Dense peaks of matrices stored in those formats; None where the part widens them to bf16 first.
    link : str or None
        What joins GPUs of one node.
    link_bytes_per_s : float or None
        Its peak for one GPU and one direction; None where nobody said.
    """

    name: str
    memory_bytes: int | None
    bandwidth_bytes_per_s: float
    flops_per_s: float
    description: str = ""
    fp8_flops_per_s: float | None = None
    fp4_flops_per_s: float | None = None
    link: str | None = None
    link_bytes_per_s: float | None = None

    def flops_for(self, weights: WeightFormat | None) -> float:
        """Return the dense peak for matrices stored in `weights`; what the part lacks is widened to bf16 first."""
        peaks = {"fp8": self.fp8_flops_per_s, "fp4": self.fp4_flops_per_s}
        return peaks.get(weights or "bf16") or self.flops_per_s

    @property
    def ridge_flops_per_byte(self) -> float:
        """Arithmetic intensity at which memory time and compute time are equal at peak rates, in FLOP/B."""
        return self.flops_per_s / self.bandwidth_bytes_per_s


class GpuSettings(Settings):
    """A GPU written inline. Give its memory in MiB or in bytes; leave it out where nothing is sized by it."""

    name: str = Field(default="inline", min_length=1, description="Name shown in results.")
    memory_mib: Count | None = Field(
        default=None,
        gt=0,
        description="Memory as the driver reports it (nvidia-smi), not the marketing figure.",
        json_schema_extra={"unit": "MiB"},
    )
    memory_bytes: Count | None = Field(
        default=None,
        gt=0,
        description="The same in bytes; give one of the two.",
        json_schema_extra={"unit": "B"},
    )
    bandwidth_bytes_per_s: float = Field(ge=1, description="Peak memory bandwidth.", json_schema_extra={"unit": "B/s"})
    flops_per_s: float = Field(
        ge=1,
        description="Dense peak, without sparsity, in bf16.",
        json_schema_extra={"unit": "FLOP/s"},
    )
    fp8_flops_per_s: float | None = Field(
        default=None,
        ge=1,
        description="The same for fp8 matrices. Default: flops_per_s.",
        json_schema_extra={"unit": "FLOP/s"},
    )
    fp4_flops_per_s: float | None = Field(
        default=None,
        ge=1,
        description="The same for fp4 matrices. Default: flops_per_s.",
        json_schema_extra={"unit": "FLOP/s"},
    )
    link: str | None = Field(default=None, min_length=1, description="What joins the GPUs of a node, for people.")
    link_bytes_per_s: float | None = Field(
        default=None,
        ge=1,
        description="Peak between GPUs, of one GPU in one direction; needed by calibrated presets with several GPUs.",
        json_schema_extra={"unit": "B/s"},
    )

    @model_validator(mode="after")
    def _memory_once(self) -> Self:
        if self.memory_mib is not None and self.memory_bytes is not None:
            raise invalid("give memory_mib or memory_bytes, not both")
        return self
