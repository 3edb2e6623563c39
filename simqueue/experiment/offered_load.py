"""The load that a scenario offers to each policy: capacity, load, estimated latencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simqueue.errors import InputError
from simqueue.experiment.build import build_all
from simqueue.experiment.demand import Offered, asked_of, offered
from simqueue.experiment.fleet_load import fleet_load
from simqueue.experiment.policy_load import PolicyLoad, loaded
from simqueue.experiment.served import Served, served
from simqueue.request import Request
from simqueue.scenario.resolved import ResolvedPolicy, ResolvedScenario
from simqueue.schedulers import Policy
from simqueue.simulation.recording import Recording


def policy_loads(
    scenario: ResolvedScenario,
    requests: Sequence[Request] | None = None,
    policies: Mapping[str, Policy] | None = None,
    recordings: Mapping[str, Recording] | None = None,
    *,
    estimates: bool = True,
) -> dict[str, PolicyLoad]:
    """Return capacity, load and estimates of every policy of a scenario.

    Parameters
    ----------
    scenario : ResolvedScenario
    requests : sequence of Request, optional
        The requests of replication 0, if they are known. They describe traces and listed requests.
    policies : mapping of str to Policy, optional
        By name; what they refuse, cut and cache is no load. By default they are built.
    recordings : mapping of str to Recording, optional
        Runs of replication 0, which show the hits of prefix caches.
    estimates : bool
        Whether latencies are estimated too.

    Raises
    ------
    InputError
        If the scenario is wrong.
    """
    load = offered(scenario, requests)
    built = build_all(scenario) if policies is None else policies
    runs = recordings or {}
    found = {}
    for policy in scenario.policies:
        name = policy.name
        if policy.fleet is not None:
            found[name] = fleet_load(scenario, policy, load, runs.get(name))
            continue
        by = served(scenario, policy, built[name])
        found[name] = _policy_load(policy, built[name], by, load, runs.get(name), estimates=estimates)
    return found


def _policy_load(
    policy: ResolvedPolicy,
    built: Policy,
    by: Served | None,
    load: Offered | None,
    recording: Recording | None,
    *,
    estimates: bool,
) -> PolicyLoad:
    if load is None:
        return PolicyLoad(None, None, None, "the workload has no fixed rate of requests")
    if by is None:
        return PolicyLoad(None, None, None, f"no capacity law for the scheduler '{policy.scheduler}'")
    try:
        asked = asked_of(built, load, recording)
        return loaded(policy.step_time, by, asked, estimates=estimates)
    except InputError as error:
        return PolicyLoad(None, None, None, str(error))
    except ArithmeticError as error:  # what is said about a run must not lose the run
        return PolicyLoad(None, None, None, f"the capacity law failed: {error}", failed=True)
