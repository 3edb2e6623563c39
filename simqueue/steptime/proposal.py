"""Which preset is nearest to a deployment, for runs that name none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simqueue.hardware import Gpu, Model
from simqueue.steptime.preset import Preset, load_preset, preset_names
from simqueue.steptime.validity import hardware_notes

_NEVER: Final = ("another GPU", "another kind of model")
"""What a proposed preset does not differ in."""


def proposal(model: Model, gpu: Gpu, tensor_parallel: int, engine: str = "vllm") -> str | None:
    """Return a line that names the nearest preset of a server, for a run with the ideal roofline; None without one.

    Parameters
    ----------
    model, gpu, tensor_parallel
        The deployment.
    engine : str
        Name of the engine; presets of other engines are not proposed.
    """
    near = list(_near(model, gpu, tensor_parallel, engine))
    if not near:
        return None
    _, name, different = min(near)
    but = f", though for {' and '.join(different)}" if different else ""
    return (
        "step_time: no preset is named, and the ideal roofline is a lower bound; "
        f"the nearest measured server is preset: {name}{but}"
    )


def _near(model: Model, gpu: Gpu, tensor_parallel: int, engine: str) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Yield how many things differ, the name, and what differs, of each preset that can be proposed."""
    for name in preset_names():
        preset = load_preset(name)
        if not _serves(preset, engine):
            continue
        regimes = dict.fromkeys(note.regime for note in hardware_notes(preset, model, gpu, tensor_parallel))
        if not any(regime in regimes for regime in _NEVER):
            yield len(regimes), name, tuple(regimes)


def _serves(preset: Preset, engine: str) -> bool:
    card = preset.card
    is_current = card.engine is not None and "2023" not in card.engine
    return is_current and not card.kernels and str(card.engine).lower().startswith(engine)
