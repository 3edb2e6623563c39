"""The part of the fidelity report on mixtures of experts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from simqueue.calibration import error_row
from studies.fidelity.moe_layers import FittedLayers, LayerCase
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
