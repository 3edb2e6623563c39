"""The input of figures and reports: the tables of a result, whether it was just computed or read from its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from simqueue.errors import InputError
from simqueue.names import unknown

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


class ResultView(Protocol):
    """A result as figures and reports use it: `Result` after a run, `StoredResult` read from a folder."""

    @property
    def scenario(self) -> Mapping[str, Any]:
        """The resolved scenario."""

    @property
    def origins(self) -> Mapping[str, str]:
        """Where each value of the scenario comes from, by its dotted path."""

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
        """One row per request and policy."""

    @property
    def steps(self) -> pd.DataFrame:
        """One row per step; consecutive equal steps are merged."""

    @property
    def replicas(self) -> pd.DataFrame:
        """One row per replica of each run of a fleet."""

    @property
    def lives(self) -> pd.DataFrame:
        """One row per change of the state of a replica."""

    @property
    def summary_rows(self) -> Sequence[Mapping[str, Any]]:
        """One row per policy and request class; None where a value is undefined."""

    @property
    def replication_rows(self) -> Sequence[Mapping[str, Any]]:
        """The same for each replication."""

    @property
    def group_rows(self) -> Sequence[Mapping[str, Any]]:
        """One row per group of each fleet."""

    @property
    def slo(self) -> Mapping[str, float]:
        """Latency limits in milliseconds, of requests and of the run."""

    @property
    def class_slo(self) -> Mapping[str, Mapping[str, float]]:
        """Limits of workloads and classes that have their own."""

    @property
    def warmup_s(self) -> float:
        """Requests that arrive before this time are not measured."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line per warning."""

    @property
    def replicated(self) -> bool:
        """Whether any policy ran more than once."""

    @property
    def confidence(self) -> float:
        """Nominal coverage of the intervals."""

    @property
    def blocks_total(self) -> int | None:
        """Size of the first policy's KV pool in blocks; None if it is not known."""

    def means_over_time(self, points: int = ..., until_s: float | None = None) -> pd.DataFrame:
        """Return means over the replications as functions of time, with intervals."""

    def gap_curve(self, policy: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the distribution of the time between tokens, over all replications of the policy.

        These are values in milliseconds in ascending order, and the share of gaps that are not above each. Both are
        empty if there are no gaps or if they are not known.
        """

    def last_token_s(self, policy: str) -> NDArray[np.float64] | None:
        """Return when each request of the policy's first replication emitted its last token; None if not known."""


def first_replication(table: pd.DataFrame, policy: str) -> pd.DataFrame:
    """Return the rows of a policy's first replication; figures over time show one run."""
    own = table[table["policy"] == policy]
    return own[own["replication"] == own["replication"].min()] if len(own) else own


def fleets_of(result: ResultView) -> dict[str, pd.DataFrame]:
    """Return the replicas of the first replication of each policy with several of them."""
    found = {policy: first_replication(result.replicas, policy) for policy in result.policies}
    return {policy: rows for policy, rows in found.items() if len(rows) > 1}


def steps_of_one(result: ResultView, policy: str) -> pd.DataFrame:
    """Return the steps of a policy's first replication; of a fleet those of its busiest replica."""
    steps = first_replication(result.steps, policy)
    number = busiest_replica(result, policy)
    return steps if number is None else steps[steps["replica"] == number]


def busiest_replica(result: ResultView, policy: str) -> int | None:
    """Return the number of the replica with the largest busy share; None for a policy with one replica."""
    replicas = fleets_of(result).get(policy)
    if replicas is None:
        return None
    return int(replicas["replica"].iloc[int(replicas["busy_share"].fillna(-1.0).argmax())])


def checked_policy(result: ResultView, policy: str | None) -> str:
    """Return `policy`, or the first policy if it is None.

    Raises
    ------
    InputError
        If the result does not have the policy, or has none.
    """
    known = list(result.policies)
    if not known:
        raise InputError("the result has no policy to draw")
    if policy is None:
        return known[0]
    if policy not in known:
        raise InputError(unknown("policy", policy, known))
    return policy
