"""One measurement of one kind of step, with everything that prices it."""

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
        The row it stands in, for messages.
    model, gpu, tensor_parallel : Model, Gpu, int
    batch : Batch
        What the step ran.
    measured_s : float
    group : str
        Rows that are reported together.
    """

    where: str
    model: Model
    gpu: Gpu
    tensor_parallel: int
    batch: Batch
    measured_s: float
    group: str = ""

    @property
    def phase(self) -> Phase:
        """``decode``, ``prefill`` or ``mixed``."""
        if not self.batch.prefill:
            return "decode"
        return "mixed" if self.batch.decode_seqs else "prefill"


@dataclass(frozen=True, slots=True)
class ServedCase:
    """A measured mean of a served run, as a weighted sum of the times of its steps.

    Attributes
    ----------
    where : str
    model, gpu, tensor_parallel : Model, Gpu, int
    batches : sequence of Batch
        Kinds of steps of the run.
    weights : sequence of float
        How often each counts in the mean: ``measured_s`` is to be ``sum(weight * seconds(batch))``.
    measured_s : float
    group : str
    """

    where: str
    model: Model
    gpu: Gpu
    tensor_parallel: int
    batches: Sequence[Batch]
    weights: Sequence[float]
    measured_s: float
    group: str = ""

    @property
    def phase(self) -> Phase:
        """Always ``served``."""
        return "served"


Case = StepCase | ServedCase
