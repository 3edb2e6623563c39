"""Accelerators: memory size, memory bandwidth, peak FLOP/s, and the link between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import Field, model_validator

from simqueue.hardware.allreduce import AllReduce, AllReduceSettings
from simqueue.hardware.grouped import GroupedGemm, GroupedGemmSettings
from simqueue.hardware.power import Power, PowerSettings
from simqueue.hardware.precision import WeightFormat
from simqueue.hardware.price import Price, PriceSettings
from simqueue.settings import Count, Settings, invalid

MIB = 2**20
GB = 1e9


@dataclass(frozen=True, slots=True)
class Gpu:
    """One accelerator.

    Attributes
    ----------
    name : str
        Name in the library, or the name given inline.
    memory_bytes : int or None
        Memory as the driver reports it, not the marketing figure; None: unknown.
    bandwidth_bytes_per_s : float
        Peak memory bandwidth.
    flops_per_s : float
        Dense peak (no sparsity) in bf16.
    description : str
        One line of text.
    fp8_flops_per_s, fp4_flops_per_s : float or None
        Dense peaks for matrices in these formats; None: the GPU converts them to bf16 first.
    link : str or None
        Interconnect between the GPUs of a node.
    link_bytes_per_s : float or None
        Peak of the link per GPU and direction; None: unknown.
    allreduces : tuple of (int, AllReduce)
        Measured all-reduces by number of GPUs; empty: none were measured.
    grouped_gemms : tuple of (WeightFormat, GroupedGemm)
        Measured computation of experts by format of their weights; empty: none was measured.
    power : Power or None
        Electrical power; None: it was not measured.
    price : Price or None
        An example of what it costs to rent; None: unknown.
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
    allreduces: tuple[tuple[int, AllReduce], ...] = ()
    grouped_gemms: tuple[tuple[WeightFormat, GroupedGemm], ...] = ()
    power: Power | None = None
    price: Price | None = None

    def allreduce(self, gpus: int) -> AllReduce | None:
        """Return the measured all-reduce over this number of GPUs; None if it was not measured."""
        return dict(self.allreduces).get(gpus)

    def grouped_gemm(self, weights: WeightFormat) -> GroupedGemm | None:
        """Return the measured computation of experts in this format; None if it was not measured."""
        return dict(self.grouped_gemms).get(weights)

    def flops_for(self, weights: WeightFormat | None) -> float:
        """Return the dense peak for matrices in format `weights`; that of bf16 if the GPU has none of its own."""
        peaks = {"fp8": self.fp8_flops_per_s, "fp4": self.fp4_flops_per_s}
        return peaks.get(weights or "bf16") or self.flops_per_s

    @property
    def ridge_flops_per_byte(self) -> float:
        """Arithmetic intensity in FLOP/B at which memory time and compute time are equal at peak rates."""
        return self.flops_per_s / self.bandwidth_bytes_per_s


class GpuSettings(Settings):
    """A GPU written inline. Memory is given in MiB or in bytes; it can be left out if no KV pool is sized by it."""

    name: str = Field(default="inline", min_length=1, description="name shown in results")
    memory_mib: Count | None = Field(
        default=None,
        gt=0,
        description="memory as the driver reports it (nvidia-smi), not the marketing figure",
        json_schema_extra={"unit": "MiB"},
    )
    memory_bytes: Count | None = Field(
        default=None,
        gt=0,
        description="the same in bytes; give one of the two",
        json_schema_extra={"unit": "B"},
    )
    bandwidth_bytes_per_s: float = Field(ge=1, description="peak memory bandwidth", json_schema_extra={"unit": "B/s"})
    flops_per_s: float = Field(
        ge=1,
        description="dense peak in bf16, without sparsity",
        json_schema_extra={"unit": "FLOP/s"},
    )
    fp8_flops_per_s: float | None = Field(
        default=None,
        ge=1,
        description="the same for fp8 matrices; default: flops_per_s",
        json_schema_extra={"unit": "FLOP/s"},
    )
    fp4_flops_per_s: float | None = Field(
        default=None,
        ge=1,
        description="the same for fp4 matrices; default: flops_per_s",
        json_schema_extra={"unit": "FLOP/s"},
    )
    link: str | None = Field(
        default=None, min_length=1, description="name of the interconnect between the GPUs of a node"
    )
    link_bytes_per_s: float | None = Field(
        default=None,
        ge=1,
        description="peak of the interconnect per GPU and direction; needed by calibrated presets on several GPUs "
        "whose all-reduces are not given",
        json_schema_extra={"unit": "B/s"},
    )
    allreduces: list[AllReduceSettings] = Field(
        default=[], description="measured all-reduces, by number of GPUs; without them, a preset uses link_bytes_per_s"
    )
    grouped_gemms: list[GroupedGemmSettings] = Field(
        default=[],
        description="measured computation of routed experts, by format of their weights; without it, a preset uses "
        "that of another GPU and says so",
    )
    power: PowerSettings | None = Field(
        default=None, description="measured power, for the energy that `simqueue explain` shows; null: unknown"
    )
    price: PriceSettings | None = Field(
        default=None, description="what one costs, where usd_per_gpu_hour is not given; null: unknown"
    )

    @model_validator(mode="after")
    def _memory_once(self) -> Self:
        if self.memory_mib is not None and self.memory_bytes is not None:
            raise invalid("give memory_mib or memory_bytes, not both")
        return self

    @model_validator(mode="after")
    def _each_measurement_once(self) -> Self:
        _check_once([measured.gpus for measured in self.allreduces], "allreduces", "gpus")
        _check_once([measured.weights for measured in self.grouped_gemms], "grouped_gemms", "weights")
        return self


def _check_once(values: Sequence[int | str], key: str, name: str) -> None:
    for place, value in enumerate(values):
        if value in values[:place]:
            raise invalid("is there twice", key, place, name, value=value)
