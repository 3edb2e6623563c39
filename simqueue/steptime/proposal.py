"""Which preset is nearest to a deployment, for runs that name none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simqueue.hardware import Gpu, Model
from simqueue.steptime.model_error import is_of
from simqueue.steptime.preset import Preset, load_preset, preset_names
from simqueue.steptime.validity import hardware_notes

_NEVER: Final = ("another GPU", "another kind of model")
"""What a proposed preset does not differ in."""


def proposal(
    model: Model, gpu: Gpu, tensor_parallel: int, engine: str | None = None, *, expert_parallel: bool = False
) -> str:
    """Return a line that names the nearest preset of a server, for a run with the ideal roofline.

    Parameters
    ----------
    model, gpu, tensor_parallel, expert_parallel
        The deployment.
    engine : str, optional
        Name of the engine, so that presets of others are not proposed; by default it may be any.
    """
    told = "step_time: no preset is named, and the ideal roofline is a lower bound; "
    deployment = (model, gpu, tensor_parallel, expert_parallel)
    near = list(_near(deployment, engine))
    if not near:
        return f"{told}no {engine or 'server'} was measured with models of this kind on {gpu.name}"
    *_, name, different = min(near)
    but = f", though for {' and '.join(different)}" if different else ""
    return f"{told}the nearest measured server is preset: {name}{but}"


def _near(
    deployment: tuple[Model, Gpu, int, bool], engine: str | None
) -> Iterator[tuple[int, bool, bool, str, tuple[str, ...]]]:
    """Yield each preset as how many things differ, what decides between equal ones, its name, and what differs.

    Of equal ones, those that know their server come first, then those of vLLM.
    """
    model, gpu, tensor_parallel, expert_parallel = deployment
    for name in preset_names():
        preset = load_preset(name)
        if not _serves(preset, engine):
            continue
        notes = hardware_notes(preset, model, gpu, tensor_parallel, expert_parallel=expert_parallel)
        regimes = dict.fromkeys(note.regime for note in notes)
        if not any(regime in regimes for regime in _NEVER):
            of_others = engine is None and not is_of(preset.card, "vllm")
            yield len(regimes), preset.card.server is None, of_others, name, tuple(regimes)


def _serves(preset: Preset, engine: str | None) -> bool:
    card = preset.card
    is_current = card.engine is not None and "2023" not in card.engine
    return is_current and not card.kernels and (engine is None or is_of(card, engine))
