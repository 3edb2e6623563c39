"""Changes of a resolved scenario, checked as the same keys of a scenario file are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from simqueue.datafiles.yamlfile import Document
from simqueue.errors import Problem
from simqueue.scenario.plaindata import python_value
from simqueue.scenario.precision import PrecisionSettings
from simqueue.scenario.problems import validated
from simqueue.scenario.written import Written
from simqueue.settings import Settings, invalid_all
from simqueue.workload.arrivals.settings import ArrivalSettings

Seed = Annotated[int, Field(ge=0, lt=2**63)]
Replications = Annotated[int, Field(ge=1, le=10_000)]
Horizon = Annotated[float, Field(gt=0)]
Warmup = Annotated[float, Field(ge=0)]


class Variation(Settings):
    """The values after a change that can be checked without the rest of the scenario; None: not changed."""

    seed: Seed
    replications: Replications
    precision: PrecisionSettings | None
    horizon_s: Horizon | None
    warmup_s: Warmup | Literal["auto"]
    policies: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    arrivals: ArrivalSettings | None = None
    rate_rps: Annotated[float, Field(gt=0)] | None = None
    num_requests: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = [
            *time_problems(self.horizon_s, self.warmup_s),
            *replication_problems(self.replications, self.precision),
        ]
        names = self.policies or ()
        if len(set(names)) < len(names):
            problems.append(Problem(("policies",), f"must be different names; they are {', '.join(names)}"))
        if problems:
            raise invalid_all(problems)
        return self


def checked(now: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes as a scenario has them.

    Parameters
    ----------
    now : mapping
        The present value of each key that `Variation` needs.
    changes : mapping
        Keys of `Variation`.

    Raises
    ------
    InputError
        One line per problem, as for the same keys in a file.
    """
    made = validated(
        Variation, Written(Document("", {**now, **{key: python_value(value) for key, value in changes.items()}}))
    )
    return {key: getattr(made, key) for key in changes}


def time_problems(horizon_s: float | None, warmup_s: float | Literal["auto"]) -> Iterator[Problem]:
    """Yield what is wrong with the warm-up for this end of the run."""
    if horizon_s is not None and warmup_s != "auto" and warmup_s >= horizon_s:
        yield Problem(("warmup_s",), f"must be less than horizon_s, which is {horizon_s:g}")


def replication_problems(replications: int, precision: PrecisionSettings | None) -> Iterator[Problem]:
    """Yield what is wrong with the number of replications and the precision together."""
    if precision is None:
        return
    if replications != 1:
        yield Problem(("replications",), "must be 1 with precision, which decides the number of replications")
    yield from precision.problems()
