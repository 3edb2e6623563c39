"""The part of the fidelity report on mixtures of experts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from simqueue.calibration import error_row
from studies.fidelity.moe_layers import FittedLayers, LayerCase
from studies.fidelity.moe_served import ServedExperts, TokenTimes
from studies.fidelity.tables import table

_LAYERS: Final = """\
## Mixtures of experts

### Layers of experts

Kernels of vLLM (0.19.0; A100: 0.14.0) that compute the routed experts of one layer, on one GPU. Four values are fitted
for each GPU and format; `simqueue/hardware/gpus/` has them. A layer takes a fixed time, and what it takes to read the
experts that tokens are routed to and the activations, and to compute; see `docs/reference/steptime.md`. In the last
columns, each geometry is predicted by a fit to the others (MXFP4 was measured with one geometry).

The routing that was measured is either balanced, so that tokens go round, or drawn from a power law; then the load is
the mean of 40 draws of the same kind, as the one draw that was measured is not published. With expert parallelism the
measured GPU is the one with the most tokens, without any exchange.
"""

_SERVED: Final = """\
### Served mixtures of experts

Closed loops as above, simulated in the same way. In the first table each preset is compared with the runs that it is
fitted to; its file has the error of rows left out one in five. The kernels are those of the layers above, except that
presets of gpt-oss have rates of experts of their own: MXFP4 was measured on the H200 only, and servers run a faster
kernel. Fitted beside that are a time per sequence, a time per layer with experts, and how often tokens use the same
experts, as far as the rows determine them; for vLLM and SGLang, TTFT too, with a front end as above. TTFTs of
TensorRT-LLM were not fitted: no front end explains them together with TPOT. The worst rows of gpt-oss on H100
contradict others: at 32 clients and 1,024 tokens, four GPUs take 15.9 ms per token, two take 10.9.
"""

_LEFT_OUT: Final = """\
### Models, GPUs and engines left out

The same runs, and others, with a preset that has not seen them: that of dense models on the same engine and GPU, of
another mixture of experts, of the same model on another GPU, or of another engine. TensorRT-LLM's runs are of several
undated versions that differ by up to a factor of two at the same load (DeepSeek on eight H200, four clients: 13.8 ms
with experts divided, 7.1 ms with whole ones), so one does not predict another.
"""

_TOKENS: Final = """\
### Times between tokens, not fitted

Median time between tokens of vLLM (no version stated) on H100, with as many requests as there are seats, from
`mlenergy_v3.csv.gz`. It is compared with a decode step of the mean number of requests, each with an assumed prompt of
200 tokens and half of the mean answer. No preset is fitted to these rows. `vllm-h100` is fitted to dense models alone;
its experts are the measured kernels.
"""

_BY: Final = "### Layers of experts by {what}\n"


def layer_section(fitted: Sequence[FittedLayers]) -> Iterator[str]:
    """Yield the part on layers."""
    yield _LAYERS
    yield table(
        (
            *("GPU", "experts in", "rows", "bandwidth share", "MFU", "overlap exponent", "us a layer"),
            *("MAPE", "median", "bias", "worst", "geometry left out: MAPE", "median"),
        ),
        [_fit_line(one) for one in fitted],
    )
    for what, key in _KEYS.items():
        yield _BY.format(what=what)
        yield table(
            ("GPU", "experts in", what, "rows", "MAPE", "median", "bias", "worst"),
            [line for one in fitted for line in _group_lines(one, key)],
        )


def _fit_line(one: FittedLayers) -> Sequence[str]:
    rates, row = one.rates, error_row("", one.errors)
    values = (rates.bandwidth_share, rates.mfu, rates.overlap_exponent, rates.layer_us)
    left_out = ("-", "-")
    if len(one.left_out_errors):
        held = error_row("", one.left_out_errors)
        left_out = (f"{held.mape:.1f}", f"{held.median:.1f}")
    return (
        *(one.gpu, one.weights, str(row.rows), *(f"{value:g}" for value in values)),
        *(f"**{row.mape:.1f}**", f"{row.median:.1f}", f"{row.bias:+.1f}", f"{row.worst:.0f}", *left_out),
    )


def _parallel(case: LayerCase) -> str:
    if case.expert_parallel > 1:
        return f"EP {case.expert_parallel}"
    return f"TP {case.tensor_parallel}"


def _tokens(case: LayerCase) -> str:
    bounds = (1, 32, 512, 4096)
    low = max(bound for bound in bounds if bound <= case.tokens)
    above = [bound for bound in bounds if bound > case.tokens]
    return f"{low} to {above[0] - 1}" if above else f"from {low}"


_KEYS: Final[dict[str, Callable[[LayerCase], str]]] = {
    "geometry": lambda case: case.geometry,
    "parallelism": _parallel,
    "routing": lambda case: case.routing,
    "tokens": _tokens,
}


def _group_lines(one: FittedLayers, key: Callable[[LayerCase], str]) -> Iterator[Sequence[str]]:
    names = np.array([key(case) for case in one.cases])
    for name in dict.fromkeys(names.tolist()):
        row = error_row(name, one.errors[names == name])
        yield (
            *(one.gpu, one.weights, name, str(row.rows)),
            *(f"**{row.mape:.1f}**", f"{row.median:.1f}", f"{row.bias:+.1f}", f"{row.worst:.0f}"),
        )


def served_section(fitted: Sequence[ServedExperts], left_out: Sequence[ServedExperts]) -> Iterator[str]:
    """Yield the part on served runs."""
    for text, compared in ((_SERVED, fitted), (_LEFT_OUT, left_out)):
        yield text
        yield table(
            (
                *("engine, model", "GPU", "experts", "preset", "rows"),
                *("TPOT MAPE", "median", "bias", "worst", "TTFT median", "TTFT bias"),
            ),
            [_served_line(one) for one in compared],
        )


def _served_line(one: ServedExperts) -> Sequence[str]:
    choice, tpot, ttft = one.choice, error_row("", one.tpot), error_row("", one.ttft)
    return (
        f"{choice.engine}, {choice.model} {choice.precision}",
        *(choice.gpu, "whole (EP)" if choice.whole else "divided (TP)", f"`{choice.preset}`", str(tpot.rows)),
        *(f"**{tpot.mape:.1f}**", f"{tpot.median:.1f}", f"{tpot.bias:+.1f}", f"{tpot.worst:.0f}"),
        *(f"{ttft.median:.1f}", f"{ttft.bias:+.1f}"),
    )


def token_section(compared: Sequence[TokenTimes]) -> Iterator[str]:
    """Yield the part on times between tokens."""
    yield _TOKENS
    yield table(
        ("model", "preset", "task", "requests", "rows", "MAPE", "median", "bias", "worst"),
        [line for one in compared for line in _token_lines(one)],
    )


def _token_lines(one: TokenTimes) -> Iterator[Sequence[str]]:
    keys = np.array(
        [f"{case.group}|{'to' if case.batch.decode_seqs <= _MANY else 'above'} {_MANY}" for case in one.cases]
    )
    for key in dict.fromkeys(keys.tolist()):
        row = error_row(key, one.errors[keys == key])
        yield (
            *(one.model, f"`{one.preset}`", *key.split("|"), str(row.rows)),
            *(f"**{row.mape:.1f}**", f"{row.median:.1f}", f"{row.bias:+.1f}", f"{row.worst:.0f}"),
        )


_MANY: Final = 128
"""Most requests per step in the rows of `vllm-h100`."""
