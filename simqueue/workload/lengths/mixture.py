"""Several kinds of requests in one law: a mixture of the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from simqueue.errors import inside
from simqueue.settings import Settings, invalid
from simqueue.workload.lengths.base import LengthLaw
from simqueue.workload.lengths.choice import PlainLengthSettings

if TYPE_CHECKING:
    from simqueue.workload.lengths.base import Floats, Tokens


class Component(Settings):
    """One part of a mixture."""

    weight: float = Field(gt=0, description="How often this part comes, relative to the others.")
    law: PlainLengthSettings = Field(description="Its lengths, with bounds of their own.")


class MixtureLength(LengthLaw):
    """Each length comes from one of several laws, chosen by weight."""

    distribution: Literal["mixture"] = Field(description="Each length comes from one of several laws.")
    components: tuple[Component, ...] = Field(strict=False, description="The laws.")

    @model_validator(mode="after")
    def _usable_weights(self) -> Self:
        if not self.components:
            raise invalid("components must have at least 1 entry")
        if not sum(part.weight for part in self.components) < float("inf"):
            raise invalid("weights of the components must have a finite sum")
        return self

    def _shares(self) -> Floats:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        weights = np.array([part.weight for part in self.components])
        return np.asarray(weights / weights.sum())

    def of_uniforms(self, uniforms: Floats) -> Tokens:
        """Return one length for each uniform number: it chooses the law, and what is left of it the length.

        The length falls where a new law begins, so it does not rise with the uniform all the way.
        """
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        ends = np.cumsum(self._shares())
        chosen = np.minimum(np.searchsorted(ends, uniforms, side="right"), len(ends) - 1)
        tokens = np.empty(len(uniforms), dtype=np.int64)
        for number, (part, share, end) in enumerate(zip(self.components, self._shares(), ends, strict=True)):
            mine = chosen == number
            rest = (uniforms[mine] - (end - share)) / share
            tokens[mine] = part.law.of_uniforms(np.clip(rest, 0.0, np.nextafter(1.0, 0.0)))
        return tokens

    def mean(self) -> float:
        """Return the mean of the mixture."""
        return float(self._shares() @ [part.law.mean() for part in self.components])

    def variance(self) -> float:
        """Return the variance of the mixture: within the parts and between them."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        means = np.array([part.law.mean() for part in self.components])
        within = np.array([part.law.variance() for part in self.components])
        return float(self._shares() @ (within + (means - self.mean()) ** 2))

    def resolved(self, base_dir: Path) -> MixtureLength:
        """Return the law with the files of its parts read in."""
        parts = []
        for number, part in enumerate(self.components):
            with inside("components", number, "law"):
                parts.append(part.model_copy(update={"law": part.law.resolved(base_dir)}))
        return self.model_copy(update={"components": tuple(parts)})
