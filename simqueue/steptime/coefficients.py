"""The fitted values of a calibrated roofline, with their meaning and bounds."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from simqueue.settings import Settings


def _share(description: str, default: Any = ...) -> Any:
    return Field(default=default, ge=0.001, le=1, description=description)


def _time(description: str, unit: str, most: float) -> Any:
    return Field(default=0.0, ge=0, le=most, description=description, json_schema_extra={"unit": unit})


class Coefficients(Settings):
    """Values of the calibrated form; docs/reference/steptime.md has the formula."""

    bandwidth_share: float = _share("share of peak bandwidth at which weights are read")
    mfu: float = _share("share of the dense peak that the layers' matrices and the output head reach")
    fp8_mfu: float | None = _share("the same for the layers' matrices in fp8, of the fp8 peak; null: mfu", None)
    overlap_exponent: float | None = Field(
        default=None,
        ge=1,
        le=50,
        description="how well reading weights and computing overlap: (reading^e + computing^e)^(1/e); null: fully, so "
        "that the longer one counts",
    )
    kv_bandwidth_share: float = _share("share of peak bandwidth at which keys and values are read", 1.0)
    mixed_kv_bandwidth_share: float | None = _share(
        "the same in steps with prompt chunks; null: kv_bandwidth_share", None
    )
    reread_gb: float | None = Field(
        default=None,
        gt=0,
        le=1e6,
        description="product of decodes and GB of their keys and values per layer at which the query heads of a group "
        "read them a second time, in steps with prompt chunks; null: never",
        json_schema_extra={"unit": "GB"},
    )
    attention_mfu: float = _share("share of the dense bf16 peak that causal attention of prompts reaches", 1.0)
    walk_ns: float = _time(
        "time of one thread block per cached token and layer in steps with prompt chunks; with the longest context, a "
        "lower bound of attention",
        "ns",
        1e5,
    )
    expert_bandwidth_share: float | None = _share(
        "share of peak bandwidth at which routed experts are read; null: as measured on the GPU", None
    )
    expert_mfu: float | None = _share(
        "share of the dense peak that routed experts reach; null: as measured on the GPU", None
    )
    expert_overlap_exponent: float | None = Field(
        default=None,
        ge=1,
        le=50,
        description="how well reading and computing experts overlap; null: as measured on the GPU",
    )
    expert_layer_us: float | None = Field(
        default=None,
        ge=0,
        le=1e5,
        description="routing, sorting of tokens and launches per layer with experts; null: as measured on the GPU",
        json_schema_extra={"unit": "us"},
    )
    routing_correlation: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="how much more often two tokens of a step use the same expert than by chance: 0 not at all, "
        "towards 1 always",
    )
    layer_us: float = _time("launches, norms and activations per layer", "us", 1e5)
    prefill_layer_us: float = _time("additional time per layer in steps with prompt chunks", "us", 1e5)
    seq_us: float = _time("sampling and bookkeeping on the GPU per sequence", "us", 1e5)
    allreduce_us: float | None = Field(
        default=None,
        ge=0,
        le=1e5,
        description="latency per all-reduce; tensor parallelism has two per layer; null: as measured on the GPU",
        json_schema_extra={"unit": "us"},
    )
    link_share: float | None = _share(
        "share of the link's peak bandwidth that all-reduces reach; null: as measured on the GPU", None
    )
    host_ms: float = _time(
        "least duration of a step: the CPU prepares it while the GPU runs the previous step", "ms", 1e5
    )
    host_seq_us: float = _time("additional least duration per sequence", "us", 1e6)
    step_ms: float = _time("CPU time per step during which the GPU waits", "ms", 1e5)

    @property
    def own_experts(self) -> bool:
        """Whether the preset has rates of experts of its own, so that those measured on the GPU do not count."""
        return self.expert_bandwidth_share is not None and self.expert_mfu is not None

    @property
    def own_allreduce(self) -> bool:
        """Whether the preset has all-reduces of its own, so that those measured on the GPU do not count."""
        return self.allreduce_us is not None or self.link_share is not None
