"""Length laws that can be written as a table of values and weights: Zipf, histograms (and observed values)."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from simqueue.settings import invalid
from simqueue.workload.lengths.base import TOKENS_UNIT, BoundedLaw
from simqueue.workload.limits import MOST_TOKENS

if TYPE_CHECKING:
    from simqueue.workload.lengths.base import Floats, Tokens

LARGEST_TABLE = 10_000_000
"""Most values that a table may have."""


class TableLaw(BoundedLaw):
    """A law on finitely many values."""

    @abstractmethod
    def _table(self) -> tuple[Floats, Floats]:
        """Return the values before bounds, ascending, and their weights."""

    def _support(self) -> tuple[Floats, Floats]:
        """Return the values that can be drawn, ascending, and their weights."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        values, weights = self._table()
        kept = weights > 0
        if self.bounds == "resample":
            kept &= (values >= self.min) & (values <= (np.inf if self.max is None else self.max))
        return values[kept], weights[kept]

    def _check_support(self) -> None:
        if len(self._support()[0]) == 0:
            self._refuse_empty_bounds()

    def of_uniforms(self, uniforms: Floats) -> Tokens:
        """Return one length for each uniform number; see `LengthLaw.of_uniforms`."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        values, weights = self._support()
        cumulative = np.cumsum(weights)
        chosen = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
        return self._bounded(values[np.minimum(chosen, len(values) - 1)])

    def mean(self) -> float:
        """Return the weighted mean after bounds."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        values, weights = self._support()
        return float(np.average(self._bounded(values), weights=weights))

    def variance(self) -> float:
        """Return the weighted variance (that of the law, not an estimate) after bounds."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        values, weights = self._support()
        return float(np.average((self._bounded(values) - self.mean()) ** 2, weights=weights))


class ZipfLength(TableLaw):
    """k tokens come with a probability proportional to k to the power of -exponent, for k from 1 to ranks."""

    distribution: Literal["zipf"] = Field(description="Zipf on 1 to ranks tokens: weights 1 / k^exponent.")
    exponent: float = Field(gt=0, le=20, description="How fast long ones become rare.")
    ranks: int = Field(
        ge=1, le=LARGEST_TABLE, description="The longest length before bounds.", json_schema_extra=TOKENS_UNIT
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        self._check_support()
        return self

    def _table(self) -> tuple[Floats, Floats]:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        values = np.arange(1, self.ranks + 1, dtype=np.float64)
        return values, values**-self.exponent


_Edge = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
_Weight = Annotated[float, Field(ge=0)]


class HistogramLength(TableLaw):
    """Bins with weights; inside a bin, from its edge to the token before the next edge, all are equally likely."""

    distribution: Literal["histogram"] = Field(description="Bins with weights; equally likely inside a bin.")
    edges: Annotated[tuple[_Edge, ...], Field(min_length=2)] = Field(
        strict=False,
        description="Where the bins begin, ascending, and one past the last bin's end: one more than weights.",
        json_schema_extra=TOKENS_UNIT,
    )
    weights: Annotated[tuple[_Weight, ...], Field(min_length=1)] = Field(
        strict=False, description="How often each bin comes, relative to the others."
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        if len(self.edges) != len(self.weights) + 1:
            raise invalid(f"there are {len(self.edges)} edges for {len(self.weights)} weights; it must be one more")
        if not (np.diff(self.edges) > 0).all():
            raise invalid("edges must ascend, each greater than the one before")
        if self.edges[-1] - self.edges[0] > LARGEST_TABLE:
            raise invalid(f"the histogram is {self.edges[-1] - self.edges[0]} tokens wide, at most {LARGEST_TABLE}")
        if not 0 < sum(self.weights) < float("inf"):
            raise invalid(f"weights add up to {sum(self.weights):g}; the sum must be positive and finite")
        self._check_support()
        return self

    def _table(self) -> tuple[Floats, Floats]:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        widths = np.diff(self.edges)
        values = np.arange(self.edges[0], self.edges[-1], dtype=np.float64)
        return values, np.repeat(np.array(self.weights) / widths, widths)
