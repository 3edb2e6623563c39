"""The fitted values of a calibrated roofline, each with its meaning and bounds."""

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

    bandwidth_share: float = _share("Share of peak bandwidth at which weights are read.")
    mfu: float = _share("Share of the dense peak that the layers' matrices and the output head reach.")
    kv_bandwidth_share: float = _share("Share of peak bandwidth at which keys and values are read.", 1.0)
    mixed_kv_bandwidth_share: float | None = _share(
        "The same in steps that hold prompt pieces. Null: kv_bandwidth_share.", None
    )
    reread_gb: float | None = Field(
        default=None,
        gt=0,
        le=1e6,
        description="Decodes times GB of their keys and values in a layer at which the heads of a group, in steps that "
        "hold prompt pieces, begin to read them a second time. Null: never.",
        json_schema_extra={"unit": "GB"},
    )
    attention_mfu: float = _share("Share of the dense bf16 peak that causal attention of prompts reaches.", 1.0)
    walk_ns: float = _time(
        "Time in which one thread block passes one cached token in one layer, in steps that hold prompt pieces: the "
        "longest context bounds the step.",
        "ns",
        1e5,
    )
    layer_us: float = _time("Launches, norms and activations of one layer.", "us", 1e5)
    prefill_layer_us: float = _time("The same on top in steps that hold prompt pieces.", "us", 1e5)
    seq_us: float = _time("Sampling and bookkeeping on the GPU for one sequence of the step.", "us", 1e5)
    allreduce_us: float = _time("Latency of one all-reduce; a layer has two under tensor parallelism.", "us", 1e5)
    link_share: float = _share("Share of the link's peak that an all-reduce reaches.", 1.0)
    host_ms: float = _time("Least time of a step: the CPU prepares it while the GPU runs the one before.", "ms", 1e5)
    host_seq_us: float = _time("What each sequence adds to that least time.", "us", 1e6)
    step_ms: float = _time("CPU time of a step during which the GPU waits.", "ms", 1e5)
