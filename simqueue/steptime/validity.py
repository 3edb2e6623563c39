"""Steps outside the range in which a preset was measured: what is said of them, and how; checked once after a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from simqueue.hardware import Gpu, Model
from simqueue.steptime.base import Batch
from simqueue.steptime.folding import integers
from simqueue.steptime.preset import ExpertLayout, Preset

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Columns = Mapping[str, NDArray[Any]]


Regime = Literal[
    "in range",
    "values of your own",
    "other batches",
    "another number of GPUs",
    "another weight format",
    "another model",
    "another kind of model",
    "another engine",
    "another GPU",
    "kernels alone",
]
"""Where a preset is used, compared with the data that it was fitted to."""


class Note(NamedTuple):
    """Something that the data of a preset does not cover, and one line about it; without text it needs no warning."""

    regime: Regime
    text: str = ""


_NOTABLE: Final = 0.05
"""Share of the steps from which on steps outside the range make a run one of other batches."""


def hardware_notes(
    preset: Preset, model: Model, gpu: Gpu, tensor_parallel: int, *, expert_parallel: bool = False
) -> Iterator[Note]:
    """Yield a note for each property of model and GPU that the preset's data does not cover."""
    card, valid = preset.card, preset.card.valid
    if preset.changed:
        yield Note("values of your own", "has other values here than were fitted")
    if card.gpu is not None and gpu.name != card.gpu:
        yield Note("another GPU", f"was fitted on {card.gpu}; here the GPU is {gpu.name}")
    if valid.tensor_parallel is not None and tensor_parallel not in valid.tensor_parallel:
        text = f"was fitted for tensor_parallel {_some(valid.tensor_parallel)}; here it is {tensor_parallel}"
        yield Note("another number of GPUs", text)
    fitted_here = gpu.name == card.gpu and tensor_parallel in (valid.tensor_parallel or ())
    unknown_link = gpu.allreduce(tensor_parallel) is None and not preset.coefficients.own_allreduce
    if tensor_parallel > 1 and unknown_link and not fitted_here:
        text = (
            f"has to estimate all-reduces over {tensor_parallel} GPUs from the peak of the link: none were measured "
            f"on {gpu.name}"
        )
        yield Note("another GPU", text)
    yield from _expert_notes(preset, model, gpu, expert_layout(model, tensor_parallel, expert_parallel=expert_parallel))
    yield from _model_notes(preset, model)


def served_as(model: Model) -> str:
    """Return a model and the format of its weights, as cards name them."""
    return f"{model.name} {model.matrix_format or 'bf16'}"


def _model_notes(preset: Preset, model: Model) -> Iterator[Note]:
    valid, stored = preset.card.valid, model.matrix_format or "bf16"
    if valid.models is not None and served_as(model) not in valid.models:
        yield Note("another model")
    if valid.weights is not None and stored not in valid.weights:
        text = f"was fitted for weights in {_some(valid.weights)}; {model.name} has {stored}"
        yield Note("another weight format", text)
    active_b = model.active_parameters / 1e9
    if valid.parameters_b is not None and not valid.parameters_b[0] <= active_b <= valid.parameters_b[1]:
        first, last = valid.parameters_b
        text = f"was fitted for models of {first:g} to {last:g} B parameters; {model.name} has {active_b:.3g} B"
        yield Note("another model", text)


def expert_layout(model: Model, tensor_parallel: int, *, expert_parallel: bool) -> ExpertLayout:
    """Return how the experts of a model are on its GPUs."""
    if model.experts is None:
        return "none"
    return "whole" if expert_parallel and tensor_parallel > 1 else "divided"


def _expert_notes(preset: Preset, model: Model, gpu: Gpu, layout: ExpertLayout) -> Iterator[Note]:
    fitted = preset.card.valid.experts
    if fitted is not None and layout not in fitted:
        text = f"was fitted for {' and '.join(_LAYOUTS[one] for one in fitted)}; here it is {_LAYOUTS[layout]}"
        yield Note("another kind of model", text)
    fitted_here = gpu.name == preset.card.gpu and fitted is not None and layout in fitted
    unknown = gpu.grouped_gemm(model.expert_format) is None and not preset.coefficients.own_experts
    if layout != "none" and unknown and not fitted_here:
        text = (
            f"has to take the rates of experts in {model.expert_format} from another GPU: none were measured on "
            f"{gpu.name}"
        )
        yield Note("another GPU", text)


_LAYOUTS: Final[Mapping[ExpertLayout, str]] = {
    "none": "a dense model",
    "divided": "a mixture of experts with a share of each expert on every GPU",
    "whole": "a mixture of experts with whole experts on each GPU",
}


def step_notes(preset: Preset, steps: Columns) -> Iterator[Note]:
    """Yield a note for each quantity that is outside the preset's range in some step.

    Parameters
    ----------
    preset : Preset
    steps : mapping of str to array, each of length n_rows
        ``decode_seqs``, ``context_tokens``, ``prefill_tokens`` and ``repeat``, as in `Recording.steps`: a row is
        `repeat` consecutive steps, with the context of the first.
    """
    valid = preset.card.valid
    decode_seqs, repeat = steps["decode_seqs"], steps["repeat"]
    contexts = steps["context_tokens"] / decode_seqs.clip(min=1)
    still = 0 * repeat
    quantities = (
        ("decodes per step", valid.decode_seqs, decode_seqs, still),
        ("tokens of context per decode", valid.context_tokens, contexts, repeat - 1),
        ("prompt tokens per step", valid.prefill_tokens, steps["prefill_tokens"], still),
    )
    for what, bounds, first, grown in quantities:
        found = None if bounds is None else _outside(bounds, first, grown, repeat)
        if bounds is None or found is None:
            continue
        share, *reached = found
        fitted, here = (f"{_number(low)} to {_number(high)}" for low, high in (bounds, reached))
        text = f"was fitted for {fitted} {what}; {_percent(share)} of the steps are outside, with {here}"
        yield Note("other batches" if share >= _NOTABLE else "in range", text)


def _outside(
    bounds: Sequence[float], first: NDArray[Any], grown: NDArray[Any], repeat: NDArray[Any]
) -> tuple[float, float, float] | None:
    """Return the share of the steps outside bounds, and the least and the greatest value outside; None if none is.

    In a row of `repeat` steps, the value is `first` and grows by `grown` to the last step; 0 is no value.
    """
    import numpy as np  # noqa: PLC0415  (a scenario is validated without it)

    low, high = bounds
    last = first + grown
    # of a row that grows by one from step to step; of the others, all steps or none
    below = np.where(grown > 0, np.clip(np.ceil(low - first), 0, repeat), np.where(first < low, repeat, 0))
    above = np.where(grown > 0, np.clip(np.ceil(last - high), 0, repeat), np.where(first > high, repeat, 0))
    outside = np.where(first > 0, below + above, 0)
    share = float(outside.sum()) / max(1, int(repeat.sum()))
    if not share:
        return None
    lows, highs = (first > 0) & (below > 0), (first > 0) & (above > 0)
    grows = grown > 0
    least = np.concatenate((first[lows], np.where(grows, last - above + 1, first)[highs & ~lows]))
    most = np.concatenate((last[highs], np.where(grows, first + below - 1, first)[lows & ~highs]))
    return share, float(least.min()), float(most.max())


def as_columns(batch: Batch) -> Columns:
    """Return one step as columns, the input of `step_notes`."""
    row = (batch.decode_seqs, batch.context_tokens, batch.prefill_tokens, 1)
    names = ("decode_seqs", "context_tokens", "prefill_tokens", "repeat")
    return {name: integers(value, 1, 1) for name, value in zip(names, row, strict=True)}


def _number(value: float) -> str:
    """Return a number of tokens or requests as text, without an exponent: 31,060."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else "under 1 %"


def _some(values: list[Any]) -> str:
    return ", ".join(map(str, values))
