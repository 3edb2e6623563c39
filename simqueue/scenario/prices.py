"""What the GPUs of a policy cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simqueue.errors import InputError
from simqueue.hardware import Gpu, gpu_names
from simqueue.names import nearest, unknown

if TYPE_CHECKING:
    from simqueue.scenario.resolved import ResolvedPolicy


@dataclass(frozen=True, slots=True)
class Cost:
    """What a system costs.

    Attributes
    ----------
    gpus : int
        All GPUs of all replicas, also of those that start later.
    usd_per_hour : float or None
        Of all GPUs; None: the price of one of them is unknown.
    why_not : str
        Empty, or why there is no price.
    """

    gpus: int
    usd_per_hour: float | None
    why_not: str = ""


def cost_of(policy: ResolvedPolicy) -> Cost:
    """Return what the GPUs of a policy cost: tensor_parallel of each replica, at the price of its group."""
    fleet = policy.fleet
    parts = [(1, policy)] if fleet is None else [(group.replicas, group.policy) for group in fleet.groups]
    gpus = sum(replicas * part.tensor_parallel for replicas, part in parts)
    reasons = list(dict.fromkeys(_unpriced(part for _, part in parts)))
    if reasons:
        return Cost(gpus, None, "; ".join(reasons))
    prices = (replicas * part.tensor_parallel * (part.usd_per_gpu_hour or 0.0) for replicas, part in parts)
    return Cost(gpus, math.fsum(prices))


def _unpriced(parts: Iterable[ResolvedPolicy]) -> Iterable[str]:
    """Yield why prices are unknown."""
    for part in parts:
        if part.usd_per_gpu_hour is None:
            name = "a policy without gpu" if part.gpu is None else f"GPU {part.gpu.name}"
            yield f"no price of {name}; give usd_per_gpu_hour"


def usd_per_gpu_hour(given: float | Mapping[str, float] | None, gpu: Gpu | None) -> float | None:
    """Return the price of one GPU of a policy: what was given for it, else the example in the GPU's file.

    Raises
    ------
    InputError
        If a price is given for a misspelt name of a GPU.
    """
    if isinstance(given, Mapping):
        own = None if gpu is None else gpu.name
        for name in given:
            if name != own and name not in gpu_names() and nearest(name, gpu_names()):
                raise InputError(unknown("gpu", name, gpu_names()), "usd_per_gpu_hour", name)
        given = None if own is None else given.get(own)
    if given is not None or gpu is None or gpu.price is None:
        return given
    return gpu.price.usd_per_hour
