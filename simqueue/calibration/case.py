"""Measurements, each with the model, GPU and batches that a step-time model needs to predict it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simqueue.hardware import Gpu, Model
from simqueue.steptime import Batch

Phase = str


@dataclass(frozen=True, slots=True)
class StepCase:
    """A measured step.

    Attributes
    ----------
    where : str
        File and line, for messages.
    model, gpu, tensor_parallel : Model, Gpu, int
        The measured deployment.
    batch : Batch
        The work of the step.
    measured_s : float
        Measured duration.
    group : str
        Name of the rows that are reported together.
    expert_parallel : bool
        Whether each GPU has whole experts of a mixture of experts.
    """

    where: str
    model: Model
    gpu: Gpu
    tensor_parallel: int
    batch: Batch
    measured_s: float
    group: str = ""
    expert_parallel: bool = False

    @property
    def phase(self) -> Phase:
        """``decode``, ``prefill`` or ``mixed``."""
        if not self.batch.prefill:
            return "decode"
        return "mixed" if self.batch.decode_seqs else "prefill"


@dataclass(frozen=True, slots=True)
class ServedCase:
    """A measured mean of a served run, as a weighted sum of the durations of its steps.

    Attributes
    ----------
    where : str
        File and line, for messages.
    model, gpu, tensor_parallel : Model, Gpu, int
        The measured deployment.
    batches : sequence of Batch
        Kinds of steps of the run.
    weights : sequence of float
        Weight of each kind in the mean: the prediction of `measured_s` is ``sum(weight * seconds(batch))``.
    measured_s : float
        The measured mean.
    group : str
        Name of the rows that are reported together.
    expert_parallel : bool
        Whether each GPU has whole experts of a mixture of experts.
    prompt_tokens : float or None
        For means of TTFT, the mean prompt, for what a front end adds. None: a mean of TPOT.
    """

    where: str
    model: Model
    gpu: Gpu
    tensor_parallel: int
    batches: Sequence[Batch]
    weights: Sequence[float]
    measured_s: float
    group: str = ""
    expert_parallel: bool = False
    prompt_tokens: float | None = None

    @property
    def phase(self) -> Phase:
        """``served``, or ``served TTFT``."""
        return "served" if self.prompt_tokens is None else "served TTFT"


Case = StepCase | ServedCase
