"""The time of routed experts: grouped matrix products over the experts that a step reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import expm1, lgamma, log, log1p, sqrt
from statistics import NormalDist
from typing import Final

from simqueue.errors import InputError
from simqueue.hardware import Gpu, GroupedGemm, Model
from simqueue.hardware.model import Experts
from simqueue.hardware.precision import WeightFormat
from simqueue.steptime.coefficients import Coefficients
from simqueue.steptime.overlap import overlapped
from simqueue.steptime.work import Term

UNMEASURED: Final[Mapping[str, GroupedGemm]] = {
    "bf16": GroupedGemm(bandwidth_share=0.887, mfu=0.58, overlap_exponent=1.41, layer_us=23.1),
    "fp8": GroupedGemm(bandwidth_share=0.866, mfu=0.309, overlap_exponent=1.32, layer_us=34.5),
    "fp4": GroupedGemm(bandwidth_share=0.538, mfu=0.559, overlap_exponent=1.0, layer_us=60.8),
}
"""Rates for GPUs whose experts were not measured in a format: those of the H100, in fp4 of the H200."""

ACTIVATION_BYTES: Final = 2
"""Activations are in bf16."""


def routed_to(experts: int, active: int, correlation: float, tokens: int) -> float:
    """Return the expected number of experts that at least one of `tokens` tokens is routed to.

    The chance that a token uses an expert is beta distributed over the experts, with mean ``active / experts``;
    `correlation` is the intraclass correlation of the resulting beta-binomial distribution. 0: all experts are equally
    likely.
    """
    mean = active / experts
    if correlation == 0 or active == experts:
        return experts * (1 - (1 - mean) ** tokens)
    total = 1 / correlation - 1
    unused = (1 - mean) * total
    return -experts * expm1(_log_ratio(unused, total, tokens))


def _log_ratio(low: float, high: float, n: int) -> float:
    """Return the logarithm of ``low (low + 1) .. (low + n - 1) / (high (high + 1) .. (high + n - 1))``.

    Differences of the logarithm of the gamma function cancel for large arguments; there Stirling's series is used, with
    the large terms taken together.
    """
    if low < _LARGE:
        return lgamma(low + n) - lgamma(low) + lgamma(high) - lgamma(high + n)
    return n * log((low + n) / (high + n)) + _stirling_rest(low, n) - _stirling_rest(high, n)


def _stirling_rest(x: float, n: int) -> float:
    return (x - 0.5) * log1p(n / x) + (1 / (x + n) - 1 / x) / 12 - ((x + n) ** -3 - x**-3) / 360


_LARGE: Final = 50.0
"""Above this, the first term of Stirling's series that is left out is below 1e-11."""


@dataclass(frozen=True, slots=True)
class ExpertTime:
    """Seconds of all layers with routed experts, on the GPU with the most work.

    Attributes
    ----------
    experts : Experts
        Their number, shape, and routing.
    ranks : int
        GPUs over which whole experts are distributed; 1 if each GPU has a share of every expert.
    excess : float
        Load of the busiest of them above the mean, in standard deviations.
    correlation : float
        How much more often tokens agree on an expert than by chance.
    expert_bytes, expert_flops : float
        Weights of one expert on one GPU, and FLOPs of one token in it.
    activation_bytes : float
        Activations read and written on one GPU per token and expert.
    s_per_byte, s_per_flop, layer_s : float
    overlap_exponent : float
    """

    experts: Experts
    ranks: int
    excess: float
    correlation: float
    expert_bytes: float
    expert_flops: float
    activation_bytes: float
    s_per_byte: float
    s_per_flop: float
    layer_s: float
    overlap_exponent: float

    @classmethod
    def of(
        cls, values: Coefficients, model: Model, gpu: Gpu, tensor_parallel: int, *, expert_parallel: bool
    ) -> ExpertTime | None:
        """Return the time of a model's experts on each of `tensor_parallel` GPUs; None for a dense model.

        Raises
        ------
        InputError
            If whole experts cannot be distributed evenly over the GPUs.
        """
        experts = model.experts
        if experts is None:
            return None
        if expert_parallel:
            _check_even(model.name, experts.count, tensor_parallel)
        rates = rates_of(values, gpu, model.expert_format)
        parts = 1 if expert_parallel else tensor_parallel
        hidden = model.hidden or 1  # always known: without it, experts are not counted
        numbers = 3 * hidden + 2 * experts.parameters / hidden / parts
        peak = gpu.flops_per_s if model.expert_format == "fp4" else gpu.flops_for(model.expert_format)
        ranks = tensor_parallel if expert_parallel else 1
        return cls(
            experts=experts,
            ranks=ranks,
            excess=_largest_of(ranks),
            correlation=values.routing_correlation,
            expert_bytes=experts.parameters * model.expert_bytes_per_parameter / parts,
            expert_flops=2 * experts.parameters / parts,
            activation_bytes=ACTIVATION_BYTES * numbers,
            s_per_byte=1 / (gpu.bandwidth_bytes_per_s * rates.bandwidth_share),
            s_per_flop=1 / (peak * rates.mfu),
            layer_s=1e-6 * rates.layer_us,
            overlap_exponent=rates.overlap_exponent,
        )

    def seconds(self, tokens: int) -> float:
        """Return the duration of all layers with experts in a step of `tokens` tokens."""
        moved, flops = self._work(tokens)
        return self.experts.layers * (
            overlapped(moved * self.s_per_byte, flops * self.s_per_flop, self.overlap_exponent) + self.layer_s
        )

    def explain(self, tokens: int, *, busy: bool) -> Iterator[Term]:
        """Yield the terms of `seconds`; `busy`: whether the GPU and not the host limits the step."""
        layers, (moved, flops) = self.experts.layers, self._work(tokens)
        read_s, compute_s = layers * moved * self.s_per_byte, layers * flops * self.s_per_flop
        reads = read_s >= compute_s
        rest_s = overlapped(read_s, compute_s, self.overlap_exponent) - max(read_s, compute_s)
        yield Term("experts, reading", read_s, layers * moved, None, busy and reads, "memory")
        yield Term("experts, matrices", compute_s, None, layers * flops, busy and not reads, "compute")
        yield Term("experts, not overlapping", rest_s, None, None, counts=busy, bound="compute" if reads else "memory")
        yield Term("experts, routing and launches", layers * self.layer_s, None, None, counts=busy, bound="latency")

    def load(self, tokens: int) -> tuple[float, float]:
        """Return the experts that the busiest GPU reads in a layer, and the (token, expert) pairs that it computes."""
        experts, ranks = self.experts, self.ranks
        distinct = routed_to(experts.count, experts.active, self.correlation, tokens)
        pairs = float(tokens * experts.active)
        if ranks == 1 or not tokens:
            return distinct, pairs
        most = self._most(tokens)
        here = experts.count // ranks
        return (
            min(distinct / ranks * most, float(here), distinct),
            min(pairs / ranks * most, float(tokens * here), pairs),
        )

    def _most(self, tokens: int) -> float:
        """Return the load of the busiest of the GPUs over the mean, if loads are about normally distributed.

        They vary with the choices of the tokens, and with the popularity of the experts that a GPU has.
        """
        experts, ranks = self.experts, self.ranks
        choices = (1 - 1 / ranks) / tokens
        popularity = (1 - experts.active / experts.count) * self.correlation
        spread = sqrt(ranks / experts.active * (choices + popularity))
        return 1 + self.excess * spread

    def _work(self, tokens: int) -> tuple[float, float]:
        """Return bytes and FLOPs per layer. Every GPU moves the activations of all pairs, also those of other GPUs."""
        distinct, pairs = self.load(tokens)
        activations = tokens * self.experts.active * self.activation_bytes
        return distinct * self.expert_bytes + activations, pairs * self.expert_flops


def rates_of(values: Coefficients, gpu: Gpu, weights: WeightFormat) -> GroupedGemm:
    """Return the preset's rates of experts; where it has none, those measured on the GPU, or else on another GPU."""
    measured = gpu.grouped_gemm(weights) or UNMEASURED.get(weights, UNMEASURED["bf16"])
    return GroupedGemm(
        bandwidth_share=_or(values.expert_bandwidth_share, measured.bandwidth_share),
        mfu=_or(values.expert_mfu, measured.mfu),
        overlap_exponent=_or(values.expert_overlap_exponent, measured.overlap_exponent),
        layer_us=_or(values.expert_layer_us, measured.layer_us),
    )


def _or(own: float | None, measured: float) -> float:
    return measured if own is None else own


def _largest_of(n: int) -> float:
    """Return the expected largest of `n` standard normal values with a fixed sum (Blom's approximation)."""
    if n == 1:
        return 0.0
    return NormalDist().inv_cdf((n - 0.375) / (n + 0.25)) * sqrt(n / (n - 1))


def _check_even(model: str, experts: int, gpus: int) -> None:
    if experts % gpus:
        sizes = [n for n in range(1, experts + 1) if experts % n == 0]
        raise InputError(
            f"the {experts} experts of {model} cannot be distributed evenly over {gpus} GPUs; allowed: "
            f"{', '.join(map(str, sizes))}",
            "tensor_parallel",
        )
