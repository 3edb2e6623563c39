"""The calibrated roofline: a sum of terms, each with a measured rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from simqueue.errors import InputError
from simqueue.hardware import AllReduce, Gpu, Model
from simqueue.steptime.base import Batch, StepTime
from simqueue.steptime.coefficients import Coefficients
from simqueue.steptime.experts import ExpertTime
from simqueue.steptime.folding import ARRAYS_PAY_ABOVE, context_array, contexts
from simqueue.steptime.overlap import overlapped
from simqueue.steptime.preset import Preset
from simqueue.steptime.validity import Note, hardware_notes, step_notes
from simqueue.steptime.work import Term, Work

if TYPE_CHECKING:
    from simqueue.steptime.validity import Columns


UNMEASURED_US: Final = 4.7
UNMEASURED_SHARE: Final = 0.62
"""Latency and share of the link for GPUs whose all-reduces were not measured: those of the line through the measured
all-reduces of the H100 that has the least squared relative errors."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Coefficients as seconds, for one model on one of the GPUs that it is split over.

    Attributes
    ----------
    weights_s_per_byte, kv_s_per_byte, mixed_kv_s_per_byte : float
        Reading weights; reading KV in steps without and with prompt chunks ("mixed" steps).
    layer_s_per_flop, head_s_per_flop, attention_s_per_flop : float
        Computing the layers' matrices, the output head, and attention of prompts.
    rereads_per_byte : float
        Additional reads of the KV in mixed steps, per decode and byte of KV; at most `most_rereads`.
    most_rereads : int
        Query heads per group, minus one.
    walk_s_per_token : float
        Least duration of attention in mixed steps, per token of the longest context.
    fixed_s, prefill_fixed_s : float
        Kernel launches per step without, and with, prompt chunks.
    s_per_seq : float
        Time per sequence.
    overlap_exponent : float or None
        How reading weights and computing overlap; None: fully.
    allreduce : AllReduce or None
        The all-reduce over the GPUs that the model is split over; None with one GPU.
    allreduces, allreduce_bytes_per_token : int
        All-reduces per step; size of their messages per token.
    host_s, host_s_per_seq, step_s : float
        CPU time in parallel with the GPU, per step and per sequence; CPU time per step while the GPU waits.
    """

    weights_s_per_byte: float
    kv_s_per_byte: float
    mixed_kv_s_per_byte: float
    layer_s_per_flop: float
    head_s_per_flop: float
    attention_s_per_flop: float
    rereads_per_byte: float
    most_rereads: int
    walk_s_per_token: float
    fixed_s: float
    prefill_fixed_s: float
    s_per_seq: float
    overlap_exponent: float | None
    allreduce: AllReduce | None
    allreduces: int
    allreduce_bytes_per_token: int
    host_s: float
    host_s_per_seq: float
    step_s: float

    @classmethod
    def of(cls, values: Coefficients, model: Model, gpu: Gpu, tensor_parallel: int) -> Rates:
        """Return the rates of a model on each of `tensor_parallel` GPUs.

        Raises
        ------
        InputError
            If there are several GPUs, and the hidden width of the model or the bandwidth of the link is unknown.
        """
        layers, bandwidth = model.layers, gpu.bandwidth_bytes_per_s
        mixed_share = values.mixed_kv_bandwidth_share or values.kv_bandwidth_share
        reread_bytes = None if values.reread_gb is None else values.reread_gb * 1e9 * layers
        fixed_s = 1e-6 * layers * values.layer_us
        return cls(
            weights_s_per_byte=1 / (bandwidth * values.bandwidth_share),
            kv_s_per_byte=1 / (bandwidth * values.kv_bandwidth_share),
            mixed_kv_s_per_byte=1 / (bandwidth * mixed_share),
            layer_s_per_flop=1 / (gpu.flops_for(model.matrix_format) * _layer_mfu(values, model)),
            head_s_per_flop=1 / (gpu.flops_per_s * values.mfu),
            attention_s_per_flop=1 / (gpu.flops_per_s * values.attention_mfu),
            rereads_per_byte=0.0 if reread_bytes is None else 1 / reread_bytes,
            most_rereads=0 if model.latent_dim else model.heads // model.kv_heads - 1,
            walk_s_per_token=1e-9 * values.walk_ns * layers,
            fixed_s=fixed_s,
            prefill_fixed_s=fixed_s + 1e-6 * layers * values.prefill_layer_us,
            s_per_seq=1e-6 * values.seq_us,
            overlap_exponent=values.overlap_exponent,
            allreduce=_allreduce(values, gpu, tensor_parallel),
            allreduces=2 * layers,
            allreduce_bytes_per_token=_allreduce_bytes_per_token(model, tensor_parallel),
            host_s=1e-3 * values.host_ms,
            host_s_per_seq=1e-6 * values.host_seq_us,
            step_s=1e-3 * values.step_ms,
        )


def _layer_mfu(values: Coefficients, model: Model) -> float:
    own = values.fp8_mfu if model.matrix_format == "fp8" else None
    return values.mfu if own is None else own


def _allreduce(values: Coefficients, gpu: Gpu, tensor_parallel: int) -> AllReduce | None:
    """Return the preset's all-reduce, or else the measured one of the GPU, or else one estimated from its link.

    In a ring, each GPU sends ``2 (tp - 1) / tp`` times the message.
    """
    if tensor_parallel == 1:
        return None
    measured = gpu.allreduce(tensor_parallel)
    if measured is not None and not values.own_allreduce:
        return measured
    if gpu.link_bytes_per_s is None:
        raise InputError(
            f"link_bytes_per_s of {gpu.name} is unknown; tensor_parallel {tensor_parallel} needs it", "gpu"
        )
    sent = 2 * (tensor_parallel - 1) / tensor_parallel
    latency_us = UNMEASURED_US if values.allreduce_us is None else values.allreduce_us
    share = UNMEASURED_SHARE if values.link_share is None else values.link_share
    return AllReduce.of_link(1e-6 * latency_us, sent / (gpu.link_bytes_per_s * share))


def _allreduce_bytes_per_token(model: Model, tensor_parallel: int) -> int:
    """Return the size of the hidden state of a token, in bf16."""
    if tensor_parallel == 1:
        return 0
    if model.hidden is None:
        raise InputError(f"hidden of {model.name} is unknown; tensor_parallel {tensor_parallel} needs it", "model")
    return 2 * model.hidden


@dataclass(frozen=True, slots=True)
class CalibratedStepTime(StepTime):
    """The longer of the GPU's time, a sum of terms, and the host's; plus host time during which the GPU waits.

    Attributes
    ----------
    work : Work
        Bytes and FLOPs per GPU, without routed experts.
    rates : Rates
        Seconds per byte, FLOP, token, sequence and step.
    experts : ExpertTime or None
        The routed experts; None for a dense model.
    preset : Preset or None
        The source of the values; `warnings` compares steps with its valid range.
    notes : tuple of Note
        Properties of model and GPU that are outside that range.
    """

    work: Work
    rates: Rates
    experts: ExpertTime | None = None
    preset: Preset | None = None
    notes: tuple[Note, ...] = ()

    @classmethod
    def of(
        cls,
        model: Model,
        gpu: Gpu,
        tensor_parallel: int,
        values: Coefficients,
        preset: Preset | None = None,
        *,
        expert_parallel: bool = False,
    ) -> CalibratedStepTime:
        """Return the step time of a model on `tensor_parallel` GPUs.

        `expert_parallel`: each GPU has whole experts instead of a share of every expert.

        Raises
        ------
        InputError
            If the heads or the experts cannot be divided over this many GPUs, or a value that all-reduces need is
            unknown.
        """
        notes = (
            ()
            if preset is None
            else tuple(hardware_notes(preset, model, gpu, tensor_parallel, expert_parallel=expert_parallel))
        )
        rest = model.without_experts()
        return cls(
            Work.of(rest, tensor_parallel),
            Rates.of(values, rest, gpu, tensor_parallel),
            ExpertTime.of(values, model, gpu, tensor_parallel, expert_parallel=expert_parallel),
            preset,
            notes,
        )

    def seconds(self, batch: Batch) -> float:
        """Return the duration of one step."""
        rates, seqs = self.rates, batch.decode_seqs
        kv_bytes = self.work.decode_kv_bytes(seqs, batch.context_tokens)
        if batch.prefill:
            gpu_s = self._other_s(batch) + self._attention_s(batch, kv_bytes)
            seqs += len(batch.prefill)
        else:
            gpu_s = self._other_s(batch) + rates.kv_s_per_byte * kv_bytes
        return max(gpu_s, rates.host_s + rates.host_s_per_seq * seqs) + rates.step_s

    def durations(self, batch: Batch, n: int) -> list[float]:
        """Return the durations of `n` consecutive steps; only the KV bytes of decodes grow."""
        if n < 1 or batch.prefill or not batch.decode_seqs or self.work.window_tokens:
            return [self.seconds(batch.later(i)) for i in range(n)]
        rates = self.rates
        other_s, host_s = self._other_s(batch), rates.host_s + rates.host_s_per_seq * batch.decode_seqs
        per_byte, per_token, step_s = rates.kv_s_per_byte, self.work.kv_bytes_per_token, rates.step_s
        if n > ARRAYS_PAY_ABOVE:
            seconds = other_s + per_byte * (per_token * context_array(batch, n))
            seconds[seconds < host_s] = host_s
            longest: list[float] = (seconds + step_s).tolist()
            return longest
        return [max(other_s + per_byte * (per_token * context), host_s) + step_s for context in contexts(batch, n)]

    def warnings(self, steps: Columns) -> list[str]:
        """Return one line for each quantity that left the range in which the preset was measured."""
        if self.preset is None:
            return []
        notes = [*self.notes, *step_notes(self.preset, steps)]
        return [f"step_time: preset {self.preset.name} {note.text}" for note in notes if note.text]

    def explain(self, batch: Batch) -> list[Term]:
        """Return the terms of one step, for output; those with `counts` add up to `seconds`."""
        work, rates = self.work, self.rates
        tokens, seqs = batch.decode_tokens + batch.prefill_tokens, batch.decode_seqs + len(batch.prefill)
        weight_bytes = work.weight_bytes(tokens)
        read_s = weight_bytes * rates.weights_s_per_byte
        layer_flops, head_flops = work.linear_flops_per_token * tokens, work.head_flops_per_row * batch.sampled_rows
        compute_s = layer_flops * rates.layer_s_per_flop + head_flops * rates.head_s_per_flop
        host_s = rates.host_s + rates.host_s_per_seq * seqs
        busy = self._gpu_s(batch) >= host_s
        reads = read_s >= compute_s
        rest_s = overlapped(read_s, compute_s, rates.overlap_exponent) - max(read_s, compute_s)
        return [
            Term("weights", read_s, weight_bytes, None, busy and reads, "memory"),
            Term("matrices and head", compute_s, None, layer_flops + head_flops, busy and not reads, "compute"),
            Term(
                "reading and computing that do not overlap", rest_s, None, None, busy, "compute" if reads else "memory"
            ),
            *(() if self.experts is None else self.experts.explain(tokens, busy=busy)),
            *self._attention_terms(batch, busy=busy),
            Term("launches", rates.prefill_fixed_s if batch.prefill else rates.fixed_s, None, None, busy, "latency"),
            Term("sequences", rates.s_per_seq * seqs, None, None, busy, "latency"),
            Term("all-reduces", self._allreduce_s(tokens), None, None, busy, "link"),
            Term("host, parallel to the GPU", host_s, None, None, not busy, "host"),
            Term("host, GPU waits", rates.step_s, None, None, True, "host"),
        ]

    def _attention_terms(self, batch: Batch, *, busy: bool) -> list[Term]:
        work, rates = self.work, self.rates
        kv_bytes = work.decode_kv_bytes(batch.decode_seqs, batch.context_tokens)
        if not batch.prefill:
            return [Term("keys and values", kv_bytes * rates.kv_s_per_byte, kv_bytes, None, busy, "memory")]
        chunk_bytes, flops = work.prefill_kv_bytes(batch), work.attention_flops(batch)
        sums = (
            Term("keys and values of decodes", self._mixed_kv_s(batch, kv_bytes), kv_bytes, None, bound="memory"),
            Term("keys and values of prompts", chunk_bytes * rates.mixed_kv_s_per_byte, chunk_bytes, bound="memory"),
            Term("attention of prompts", flops * rates.attention_s_per_flop, None, flops, bound="compute"),
        )
        walk_s = rates.walk_s_per_token * _longest_context(batch)
        walks = walk_s > sum(term.seconds for term in sums)
        return [
            *(Term(t.name, t.seconds, t.bytes_moved, t.flops, busy and not walks, t.bound) for t in sums),
            Term("longest context, alone", walk_s, None, None, busy and walks, "latency"),
        ]

    def _gpu_s(self, batch: Batch) -> float:
        kv_bytes = self.work.decode_kv_bytes(batch.decode_seqs, batch.context_tokens)
        if batch.prefill:
            return self._other_s(batch) + self._attention_s(batch, kv_bytes)
        return self._other_s(batch) + self.rates.kv_s_per_byte * kv_bytes

    def _other_s(self, batch: Batch) -> float:
        """Return the part that does not depend on contexts: matrices, launches, sequences, all-reduces."""
        rates, work = self.rates, self.work
        tokens, seqs, fixed_s = batch.decode_tokens, batch.decode_seqs, rates.fixed_s
        if batch.prefill:
            tokens, seqs, fixed_s = tokens + batch.prefill_tokens, seqs + len(batch.prefill), rates.prefill_fixed_s
        read_s = work.weight_bytes(tokens) * rates.weights_s_per_byte
        compute_s = (
            work.linear_flops_per_token * tokens * rates.layer_s_per_flop
            + work.head_flops_per_row * batch.sampled_rows * rates.head_s_per_flop
        )
        other_s = overlapped(read_s, compute_s, rates.overlap_exponent)
        if self.experts is not None:
            other_s += self.experts.seconds(tokens)
        return other_s + fixed_s + rates.s_per_seq * seqs + self._allreduce_s(tokens)

    def _allreduce_s(self, tokens: int) -> float:
        rates = self.rates
        if rates.allreduce is None:
            return 0.0
        return rates.allreduces * rates.allreduce.seconds(rates.allreduce_bytes_per_token * tokens)

    def _attention_s(self, batch: Batch, kv_bytes: float) -> float:
        """Return attention in a mixed step: the sum over all sequences, or the longest sequence alone if longer."""
        rates, work = self.rates, self.work
        together = (
            work.attention_flops(batch) * rates.attention_s_per_flop
            + work.prefill_kv_bytes(batch) * rates.mixed_kv_s_per_byte
            + self._mixed_kv_s(batch, kv_bytes)
        )
        return max(together, rates.walk_s_per_token * _longest_context(batch))

    def _mixed_kv_s(self, batch: Batch, kv_bytes: float) -> float:
        """Return the KV reads of decodes in a mixed step; heads of a group re-read KV evicted from the L2 cache."""
        rates = self.rates
        again = min(float(rates.most_rereads), batch.decode_seqs * kv_bytes * rates.rereads_per_byte)
        return kv_bytes * rates.mixed_kv_s_per_byte * (1 + again)


def _longest_context(batch: Batch) -> float:
    """Return the longest context of a step; for decodes, only the mean is known."""
    longest = max(past + new for past, new in batch.prefill)
    return max(longest, batch.context_tokens / batch.decode_seqs) if batch.decode_seqs else longest
