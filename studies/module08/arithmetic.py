"""The module's arithmetic, A1 to B9, recomputed with the library's hardware and step times.

The module states effective FLOP/s, so both of its machines run at their full rate: A at 350 and B at 400 TFLOP/s.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final, Literal

from simqueue.hardware import Gpu, GpuSettings, Model, ModelSettings, load_gpu, load_model
from simqueue.steptime import Batch
from simqueue.steptime.roofline import RooflineStepTime

GIB: Final = 2**30
MIB: Final = 2**20
Verdict = Literal["right", "right with a caveat", "wrong"]
_BANDWIDTH: Final = 3.35e12
_PEAK: Final = 989e12


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number of the module, as stated and as recomputed.

    Attributes
    ----------
    key : str
        Its paragraph in the module, such as A4.
    what : str
    stated, recomputed : str
    verdict : {"right", "right with a caveat", "wrong"}
    reason : str
        Explains the verdict; may be empty.
    """

    key: str
    what: str
    stated: str
    recomputed: str
    verdict: Verdict
    reason: str = ""


def quantities() -> list[Quantity]:
    """Return all numbers, in the order of the module."""
    a = RooflineStepTime.of(_model(8e9), _gpu(350e12), bandwidth_share=1.0, mfu=1.0)
    b = RooflineStepTime.of(_model(7e9), _gpu(400e12), bandwidth_share=1.0, mfu=1.0)
    return [
        *_memory(_model(8e9), a),
        *_decodes(a),
        *_waves(a),
        *_reservation(_model(8e9)),
        *_prefills(b),
        *_mixed_step(b),
        *_chunks(b),
    ]


def sweet_spot_tokens(step: RooflineStepTime, decodes: int = 0, context: int = 0) -> float:
    """Return the number of tokens, decodes included, at which a step computes as long as it reads memory."""
    read_s = step.terms(Batch(decodes, decodes, decodes * context, (), decodes)).memory_s
    return read_s * step.layer_flops_per_s / step.work.linear_flops_per_token


def _model(parameters: float) -> Model:
    shape = {"layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128, "parameters": parameters}
    return load_model(ModelSettings.model_validate(shape))


def _gpu(flops_per_s: float) -> Gpu:
    return load_gpu(GpuSettings(bandwidth_bytes_per_s=_BANDWIDTH, flops_per_s=flops_per_s))


def _decode(n: int, context: int) -> Batch:
    return Batch(n, n, n * context, (), n)


def _judged(
    key: str, what: str, stated: float, right: float, digits: int, unit: str, reason: str = "", caveat: bool = False
) -> Quantity:
    """Compare at the module's number of digits; `caveat` is set if a right number needs its reason."""
    agrees = round(right, digits) == stated
    verdict: Verdict = "wrong" if not agrees else "right with a caveat" if caveat else "right"
    return Quantity(
        key,
        what,
        f"{stated:,g} {unit}",
        f"{right:,.0f} {unit}" if abs(right) >= 1000 else f"{right:.5g} {unit}",
        verdict,
        reason,
    )


def _memory(model: Model, a: RooflineStepTime) -> list[Quantity]:
    request = 4096 * model.kv_bytes_per_token
    return [
        _judged("A1", "weights", 16, model.weight_bytes / 1e9, 0, "GB"),
        _judged("A1", "weights read once", 4.78, 1e3 * a.terms(Batch()).memory_s, 2, "ms"),
        _judged("A2", "KV per token", 131_072, model.kv_bytes_per_token, 0, "B"),
        _judged("A3", "KV of 4096 tokens", 512, request / MIB, 0, "MiB"),
        _judged("A3", "KV of eight such requests", 4, 8 * request / GIB, 0, "GiB"),
        Quantity(
            "A3", "the same, divided by the weights", "a quarter", f"{100 * 8 * request / model.weight_bytes:.1f} %",
            "right with a caveat", "4 GiB divided by 16 GB: different units",
        ),
    ]  # fmt: skip


def _decodes(a: RooflineStepTime) -> list[Quantity]:
    batch, one = _decode(32, 1024), _decode(1, 1024)
    terms = a.terms(batch)
    kv = f"the KV is {terms.kv_bytes / 1e9:.3f} GB; with the weights that takes {1e3 * terms.memory_s:.2f} ms"
    alone, full = 1 / a.seconds(one), 32 / a.seconds(batch)
    bound = Quantity("A4", "bound by", "memory", terms.bound, "right" if terms.bound == "memory" else "wrong")
    return [
        _judged("A4", "step of 32 decodes, memory", 5.97, 1e3 * terms.memory_s, 2, "ms", kv),
        _judged("A4", "the same, work", 512, (terms.linear_flops + terms.head_flops) / 1e9, 0, "GFLOP"),
        _judged("A4", "the same, compute", 1.46, 1e3 * terms.compute_s, 2, "ms"),
        bound,
        _judged("A4", "the same, tokens", 5300, full, -2, "tok/s", f"rounded from {full:,.0f}", caveat=True),
        _judged("A5", "step of one decode", 4.8, 1e3 * a.seconds(one), 1, "ms"),
        _judged("A5", "the same, tokens", 209, alone, 0, "tok/s", "209 does not include the KV"),
        _judged("A5", "batch 32 divided by batch 1", 25, full / alone, 0, "times"),
    ]


def _waves(a: RooflineStepTime) -> list[Quantity]:
    outputs = [2000] + 7 * [50]
    useful, slots = sum(outputs), 8 * max(outputs)
    step_s = a.seconds(_decode(8, 1024))
    pass_s = max(outputs) * step_s
    context = "all contexts fixed at 1024, as in the module"
    return [
        _judged("A6", "slot-steps of a wave of 8", 16_000, slots, 0, "slot-steps"),
        _judged("A6", "useful slot-steps", 14.7, 100 * useful / slots, 1, "%"),
        _judged("A7", "step of 8 decodes", 5.1, 1e3 * step_s, 1, "ms", context, caveat=True),
        _judged("A7", "duration of the wave", 10.2, pass_s, 1, "s", context, caveat=True),
        _judged("A7", "useful tokens", 230, useful / pass_s, -1, "tok/s"),
        _judged("A7", "tokens with all slots useful", 1570, slots / pass_s, -1, "tok/s"),
        _judged("A7", "loss", 6.8, slots / useful, 1, "times"),
        _judged("A8", "requests queued during a wave at 10 req/s", 100, 10 * pass_s, -1, "requests"),
    ]


def _reservation(model: Model) -> list[Quantity]:
    reserved = 4096 * model.kv_bytes_per_token
    return [
        _judged("A9", "reserved per request of 4096 tokens", 512, reserved / MIB, 0, "MiB"),
        _judged("A9", "requests in 8 GiB", 16, 8 * GIB // reserved, 0, "requests"),
        _judged("A9", "used at a mean of 2200 tokens", 54, 100 * 2200 * model.kv_bytes_per_token / reserved, 0, "%"),
    ]


def _prefills(b: RooflineStepTime) -> list[Quantity]:
    terms = b.terms(Batch(prefill=((0, 2048),), sampled_rows=1))
    with_attention = (terms.linear_flops + terms.attention_flops) / 1e12
    attention = f"without causal attention; with it {with_attention:.1f} TFLOP and {1e3 * terms.compute_s:.0f} ms"
    weights = b.terms(Batch()).weight_bytes
    h100 = _gpu(_PEAK)
    unit = f"14 GB; the module writes GiB, but 14 GB are {weights / GIB:.1f} GiB"
    turn = next(n for n in range(1, 1000) if b.bound(Batch(n, n, 0, (), n)) == "compute")
    return [
        _judged("B1", "prefill of 2048 tokens", 28.7, terms.linear_flops / 1e12, 1, "TFLOP", attention, caveat=True),
        _judged("B1", "the same", 72, 1e3 * terms.linear_flops / b.flops_per_s, 0, "ms", attention, caveat=True),
        _judged("B2", "weights", 14, weights / GIB, 0, "GiB", unit),
        _judged("B2", "decode step", 4.2, 1e3 * b.terms(Batch()).memory_s, 1, "ms", "without any KV", caveat=True),
        Quantity(
            "B2", "independent of the batch", "up to the ridge", f"up to {turn - 1} decodes", "right with a caveat",
            "only without KV: at a context of 1024 each decode adds 0.04 ms",
        ),
        _judged("B3", "ridge", 295, h100.ridge_flops_per_byte, 0, "FLOP/B"),
        _judged("B3", "ridge batch at 40 % of the peak", 120, 0.4 * h100.ridge_flops_per_byte, -1, "decodes"),
        _judged("B3", "ridge batch at 50 % of the peak", 150, 0.5 * h100.ridge_flops_per_byte, -1, "decodes"),
    ]  # fmt: skip


def _mixed_step(b: RooflineStepTime) -> list[Quantity]:
    token_s, memory_s = _token_s(b), b.terms(Batch()).memory_s
    mixed_s = (32 + 2048) * token_s
    enough = ceil((mixed_s - 0.05) / (0.05 - memory_s))
    linear = "linear layers alone"
    return [
        _judged("B4", "time per token", 35, 1e6 * token_s, 3, "us"),
        _judged("B5", "32 decodes and 2048 prompt tokens", 73, 1e3 * mixed_s, 0, "ms", linear, caveat=True),
        _judged("B5", "the same, divided by a decode step", 17, mixed_s / memory_s, 0, "times"),
        Quantity(
            "B5", "an SLO of 50 ms for TPOT", "violated", "violated" if mixed_s > 0.05 else "met",
            "right with a caveat",
            f"one gap violates it; TPOT is a mean over the answer, and {enough} plain step brings it below 50 ms",
        ),
    ]  # fmt: skip


def _chunks(b: RooflineStepTime) -> list[Quantity]:
    token_s, memory_s = _token_s(b), b.terms(Batch()).memory_s
    steps, beside = ceil(2048 / 120), 120 - 32
    rest = f"2048 / 120 = {2048 / 120:.2f}, so {steps} steps; beside 32 decodes {beside} tokens are left, so "
    rest += f"{ceil(2048 / beside)} steps"
    launches = (
        f"0.2 ms of the {1e3 * 128 * token_s:.2f} ms for 128 tokens; it is 5 % of the {1e3 * memory_s:.1f} ms of a read"
    )
    spot = sweet_spot_tokens(b)
    return [
        Quantity(
            "B6", "TTFT", "wait + ceil(L / chunk) steps",
            f"0 + {steps} x {1e3 * max(memory_s, 120 * token_s):.2f} ms on an idle server",
            "right with a caveat", "if the decodes of the step leave room for the whole chunk",
        ),
        _judged("B7", "sweet spot", 120, spot, -1, "tokens", "includes the decodes of the step", caveat=True),
        _judged("B7", "steps for 2048 tokens", 17, steps, 0, "steps", rest),
        _judged("B7", "the same", 71, 1e3 * steps * memory_s, 0, "ms", f"{steps} steps, not 17"),
        _judged("B8", "0.2 ms of launches at chunk 128", 5, 100 * 0.2e-3 / (128 * token_s), 0, "%", launches),
        _held_kv(b),
    ]  # fmt: skip


def _held_kv(b: RooflineStepTime) -> Quantity:
    chunks = [(past, min(120, 2048 - past)) for past in range(0, 2048, 120)]
    kv = b.work.kv_bytes_per_token
    held = round(sum(b.terms(Batch(prefill=(chunk,))).kv_bytes for chunk in chunks) / kv)
    whole = round(b.terms(Batch(prefill=((0, 2048),))).kv_bytes / kv)
    return Quantity(
        "B9", "chunks hold KV longer", "yes", f"{held:,} token-steps instead of {whole:,}", "right",
        "a prompt of 2048 tokens in chunks of 120, instead of whole",
    )  # fmt: skip


def _token_s(b: RooflineStepTime) -> float:
    return b.work.linear_flops_per_token / b.flops_per_s
