"""Length law of observed values, written in the scenario or kept in a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from simqueue.errors import InputError, naming
from simqueue.settings import invalid
from simqueue.workload.lengths.table import TableLaw
from simqueue.workload.limits import MOST_TOKENS

if TYPE_CHECKING:
    from simqueue.workload.lengths.base import Floats

_Value = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
_Weight = Annotated[float, Field(ge=0)]


class EmpiricalLength(TableLaw):
    """One of the given values, as often as its weight says."""

    distribution: Literal["empirical"] = Field(description="One of the given values, by weight.")
    values: tuple[_Value, ...] | None = Field(
        default=None,
        strict=False,
        min_length=1,
        description="The lengths; or give path.",
        json_schema_extra={"unit": "tokens"},
    )
    weights: tuple[_Weight, ...] | None = Field(
        default=None, strict=False, description="How often each value comes, relative to the others; null: equally."
    )
    path: str | None = Field(
        default=None,
        description="A CSV file with a column tokens and, if wanted, a column weight; relative to the scenario file.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.values is None) == (self.path is None):
            raise invalid("empirical needs exactly one of values, path")
        if self.values is None:
            if self.weights is not None:
                raise invalid("weights go with values; with path they are the file's column weight")
            return self
        if self.weights is not None and len(self.weights) != len(self.values):
            raise invalid(f"there are {len(self.weights)} weights for {len(self.values)} values")
        if self.weights is not None and not 0 < sum(self.weights) < float("inf"):
            raise invalid(f"weights add up to {sum(self.weights):g}; the sum must be positive and finite")
        self._check_support()
        return self

    def resolved(self, base_dir: Path) -> EmpiricalLength:
        """Return the law with the values of its file, if it has one.

        Raises
        ------
        InputError
            If the file is missing, has no column ``tokens``, or holds a value that is not allowed.
        """
        if self.path is None:
            return self
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        from simqueue.workload.traces.table import read_table  # noqa: PLC0415  (same)

        with naming("path"):
            table = read_table(base_dir / self.path, self.path)
        values = table.integers("tokens", least=1, most=MOST_TOKENS)
        weights = table.floats("weight", least=0) if "weight" in table.columns else np.ones(len(values))
        if not 0 < float(weights.sum()) < np.inf:
            raise InputError(f"{self.path}: column 'weight' adds up to {weights.sum():g}; it must be positive")
        return EmpiricalLength(
            distribution="empirical",
            min=self.min,
            max=self.max,
            bounds=self.bounds,
            values=tuple(values.tolist()),
            weights=tuple(weights.tolist()),
        )

    def _table(self) -> tuple[Floats, Floats]:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        if self.values is None:
            raise InputError(f"lengths of '{self.path}' are asked for before the file has been read")
        values = np.array(self.values, dtype=np.float64)
        weights = np.ones(len(values)) if self.weights is None else np.array(self.weights)
        order = np.argsort(values, kind="stable")
        return values[order], weights[order]
