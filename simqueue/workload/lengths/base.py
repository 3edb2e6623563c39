"""The contract of length laws: how long prompts and outputs are.

A law describes a random number X. Its bounds come first: ``bounds: clip`` moves what lies outside [min, max] to
the nearer end, ``bounds: resample`` draws again until X lies inside. Then X is rounded down to whole tokens.
`mean` and `variance` are those of the tokens, after both.

Samples are made by inverting the distribution function: one uniform number a request, whatever the parameters,
so that two laws at one seed are compared on the same luck.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, Self

from pydantic import Field, model_validator
from pydantic.config import JsonDict

from simqueue.settings import Settings, invalid
from simqueue.workload.limits import MOST_TOKENS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Tokens = NDArray[np.int64]
    Floats = NDArray[np.float64]

TOKENS_UNIT: JsonDict = {"unit": "tokens"}


class LengthLaw(Settings):
    """What one may ask of every law."""

    @abstractmethod
    def of_uniforms(self, uniforms: Floats) -> Tokens:
        """Return one length for each uniform number in [0, 1), in tokens, each at least 1."""

    @abstractmethod
    def mean(self) -> float:
        """Return the mean length in tokens, after bounds and rounding down."""

    @abstractmethod
    def variance(self) -> float:
        """Return the variance of the length in tokens squared, after bounds and rounding down."""

    def sample(self, rng: np.random.Generator, n: int) -> Tokens:
        """Return `n` lengths, one uniform number each."""
        return self.of_uniforms(rng.random(n))

    def resolved(self, _base_dir: Path) -> LengthLaw:
        """Return the law with what it keeps in files read in; most laws keep nothing there."""
        return self


class BoundedLaw(LengthLaw):
    """A law with bounds."""

    min: int = Field(default=1, ge=1, le=MOST_TOKENS, description="Smallest length.", json_schema_extra=TOKENS_UNIT)
    max: int | None = Field(
        default=None, ge=1, le=MOST_TOKENS, description="Largest length; null: none.", json_schema_extra=TOKENS_UNIT
    )
    bounds: Literal["clip", "resample"] = Field(
        default="clip",
        description="What happens outside [min, max]: clip to the nearer end, or resample until inside.",
    )

    @model_validator(mode="after")
    def _min_not_above_max(self) -> Self:
        if self.max is not None and self.min > self.max:
            raise invalid(f"min {self.min} is greater than max {self.max}: no length would be allowed")
        return self

    def _bounded(self, tokens: Floats) -> Tokens:
        """Round down and bound; with ``resample`` this only catches a rounding error at an edge."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        highest = np.inf if self.max is None else self.max
        return np.clip(np.floor(tokens), self.min, highest).astype(np.int64)

    def _refuse_empty_bounds(self) -> NoReturn:
        upper = "" if self.max is None else f" and max {self.max}"
        raise invalid(f"bounds: resample can never draw a length between min {self.min}{upper} from this law")
