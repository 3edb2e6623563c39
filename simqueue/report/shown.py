"""What figures and pages are made from: the tables of a result, fresh from a run or read back from its folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from simqueue.errors import InputError
from simqueue.names import unknown

if TYPE_CHECKING:
    import pandas as pd

    from simqueue.results.summary import Row


class Shown(Protocol):
    """The views of a result that figures and pages need; `simqueue.results.result.Result` has them all."""

    @property
    def scenario(self) -> Mapping[str, Any]:
        """The resolved scenario."""

    @property
    def version(self) -> str:
        """Version of the package that made it."""

    @property
    def seed(self) -> int:
        """Seed of the scenario."""

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the policies, in order."""

    @property
    def requests(self) -> pd.DataFrame:
        """One row a request and policy."""

    @property
    def steps(self) -> pd.DataFrame:
        """One row a step, equal ones merged."""

    @property
    def summary_rows(self) -> tuple[Row, ...]:
        """One row a policy and class."""

    @property
    def slo(self) -> Mapping[str, float]:
        """Limits in milliseconds."""

    @property
    def warmup_s(self) -> float:
        """Requests that arrived before are not measured."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line each."""

    @property
    def replicated(self) -> bool:
        """Whether any policy ran more than once."""

    @property
    def confidence(self) -> float:
        """Nominal coverage of the intervals."""


def first_replication(table: pd.DataFrame, policy: str) -> pd.DataFrame:
    """Return the rows of a policy in its first replication: a course over time belongs to one run."""
    own = table[table["policy"] == policy]
    return own[own["replication"] == own["replication"].min()] if len(own) else own


def checked_policy(result: Shown, policy: str | None) -> str:
    """Return `policy`, or the first one if it is None.

    Raises
    ------
    InputError
        If the result has no such policy, or none at all.
    """
    known = list(result.policies)
    if not known:
        raise InputError("the result has no policy to draw")
    if policy is None:
        return known[0]
    if policy not in known:
        raise InputError(unknown("policy", policy, known))
    return policy
