"""Why one request went to its replica: the run is played, and its router is asked what it thinks before it chooses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Final

from simqueue.errors import InputError
from simqueue.experiment.fleets import parts, rules
from simqueue.experiment.replication import options
from simqueue.names import hint, unknown
from simqueue.printable import listed, shortened
from simqueue.request import Request
from simqueue.routing import Choice, Ranking, Router, Signal, View
from simqueue.scenario.resolved import ResolvedPolicy, ResolvedScenario
from simqueue.scenario.resolved_fleet import ResolvedFleet
from simqueue.scenario.traffic import make_traffic
from simqueue.simulation.recording import Recording
from simqueue.simulation.simulate_fleet import FleetSimulation

MOST_DECISIONS: Final = 100
"""A request that the router holds is asked about again and again; more answers than this are not kept."""

_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Seen:
    """What a router knew of one replica when it chose.

    Attributes
    ----------
    number : int
    name : str
    healthy : bool
    in_flight : int
    chance : float
        Probability with which it was chosen.
    scores : mapping of str to float
        The router's own quantities; NaN where a replica has none.
    signals : mapping of str to float
        The signals that the router reads, as it had them.
    seen_s : float
        When the engine was last looked at.
    """

    number: int
    name: str
    healthy: bool
    in_flight: int
    chance: float
    scores: Mapping[str, float]
    signals: Mapping[str, float]
    seen_s: float


@dataclass(slots=True)
class Decision:
    """One decision about a request.

    Attributes
    ----------
    at_s : float
    choice : Choice
    replicas : tuple of Seen
        In the router's own order.
    left_s : float or None
        When the request left the replica again; None: it did not.
    served : bool
        Whether it then had its answer.
    tokens : int
        Output tokens that it had made there by then.
    """

    at_s: float
    choice: Choice
    replicas: tuple[Seen, ...]
    left_s: float | None = None
    served: bool = False
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Route:
    """The way of one request.

    Attributes
    ----------
    policy, router : str
    request : Request
        As it arrived.
    decisions : tuple of Decision
        In order of time; none if it never came to the router, or found no replica that is ready.
    status, reason : str
        How it ended, and why if it was rejected; empty if the run was not played so far.
    """

    policy: str
    router: str
    request: Request
    decisions: tuple[Decision, ...]
    status: str = ""
    reason: str = ""


class _Answered(Exception):  # noqa: N818 - no error
    """The request is served: nothing more can be decided about it."""


def explain_route(scenario: ResolvedScenario, request_id: str, policy: str | None = None) -> Route:
    """Play the first replication of a policy until a request is served, and return why it went where it went.

    Parameters
    ----------
    scenario : ResolvedScenario
    request_id : str
    policy : str, optional
        By default the first one with a fleet.

    Raises
    ------
    InputError
        If there is no such policy or request, or the policy has no fleet.
    """
    chosen, fleet = _with_fleet(scenario, policy)
    how = rules(scenario, fleet, 0)
    watch = _Watch(how.router, request_id)
    traffic = make_traffic(scenario)
    played = options(scenario, chosen, check=False)
    simulation = FleetSimulation(traffic, parts(scenario, fleet), replace(how, router=watch), played)
    try:
        recording = simulation.run()
    except _Answered:
        recording = None
    status = reason = ""
    if recording is not None:
        place = _place(recording, request_id, chosen.name)
        status = str(recording.requests["status"][place])
        reason = str(recording.requests["reject_reason"][place] or "")
    request = watch.request or _from_row(recording, request_id)
    return Route(chosen.name, fleet.router, request, tuple(watch.decisions), status, reason)


def _with_fleet(scenario: ResolvedScenario, name: str | None) -> tuple[ResolvedPolicy, ResolvedFleet]:
    """Return the policy of this name, or the first one with a fleet, and its fleet."""
    named = {policy.name: policy for policy in scenario.policies}
    able = [policy.name for policy in scenario.policies if policy.fleet is not None]
    if not able:
        raise InputError("--route: no policy has a fleet; give one with fleet: {replicas: N}")
    if name is not None and name not in named:
        raise InputError(f"--policy: {unknown('policy', name, named)}")
    chosen = named[able[0] if name is None else name]
    if chosen.fleet is None:
        raise InputError(f"--policy {name}: has no fleet; policies with one: {', '.join(able)}")
    return chosen, chosen.fleet


def _place(recording: Recording, request_id: str, policy: str) -> int:
    """Return the row of a request."""
    ids = [str(one) for one in recording.requests["request_id"]]
    if request_id in ids:
        return ids.index(request_id)
    close = hint(request_id, ids)
    text = f"--route: unknown request '{shortened(request_id)}' in the run of '{policy}'"
    raise InputError(f"{text}; {close}{close and ' '}known: {listed(ids, _MOST_NAMED) or 'none'}")


def _from_row(recording: Recording | None, request_id: str) -> Request:
    """Return a request that the router never saw."""
    if recording is None:
        raise ValueError("the router saw the request")
    table = recording.requests
    place = list(table["request_id"]).index(request_id)
    prompt, output = int(table["prompt_tokens"][place]), int(table["output_tokens"][place])
    return Request(request_id, float(table["arrival_s"][place]), prompt, output)


class _Watch(Router):
    """A router that does what another one does, and notes what that one thinks of one request."""

    def __init__(self, router: Router, request_id: str) -> None:
        super().__init__(router.settings, router.random)
        self._router, self._id = router, request_id
        self.wants_first_tokens = router.wants_first_tokens  # type: ignore[misc]  # as the other one's class has it
        self.request: Request | None = None
        self.decisions: list[Decision] = []

    @property
    def reads(self) -> frozenset[Signal]:
        """Those of the other one."""
        return self._router.reads

    @property
    def is_independent(self) -> bool:
        """As the other one."""
        return self._router.is_independent

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Ask the other one."""
        return self._router.rank(request, replicas, now_s)

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Let the other one choose; of this request, note first what it knows and thinks."""
        if request.request_id != self._id or len(self.decisions) >= MOST_DECISIONS:
            return self._router.choose(request, replicas, now_s)
        ranking = self._router.rank(request, replicas, now_s)
        seen = tuple(_seen(view, request, ranking, self.reads) for view in replicas)
        choice = self._router.choose(request, replicas, now_s)
        self.request = self.request or request
        self.decisions.append(Decision(now_s, choice, seen))
        return choice

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Tell the other one."""
        self._router.dispatched(request, replica, now_s)

    def first_token(self, request: Request, replica: View, now_s: float) -> None:
        """Tell the other one."""
        self._router.first_token(request, replica, now_s)

    def finished(self, request: Request, replica: View, now_s: float, *, tokens: int, served: bool) -> None:
        """Tell the other one; note how the stay ended."""
        self._router.finished(request, replica, now_s, tokens=tokens, served=served)
        if request.request_id == self._id:
            last = self.decisions[-1]
            last.left_s, last.served, last.tokens = now_s, served, tokens
            if served:
                raise _Answered

    def joined(self, replica: View, now_s: float) -> None:
        """Tell the other one."""
        self._router.joined(replica, now_s)

    def left(self, replica: View, now_s: float) -> None:
        """Tell the other one."""
        self._router.left(replica, now_s)


_READ: Final[Mapping[Signal, Callable[[View, Request], float]]] = {
    Signal.RUNNING: lambda view, _: view.running,
    Signal.WAITING: lambda view, _: view.waiting,
    Signal.KV_USED: lambda view, _: view.kv_used,
    Signal.TOKENS: lambda view, _: view.tokens,
    Signal.CACHED: lambda view, request: view.cached_tokens(request),
}


def _seen(view: View, request: Request, ranking: Ranking, reads: frozenset[Signal]) -> Seen:
    return Seen(
        number=view.number,
        name=view.name,
        healthy=view.healthy,
        in_flight=view.in_flight,
        chance=ranking.chances.get(view.number, 0.0),
        scores={name: float(values.get(view.number, nan)) for name, values in ranking.scores.items()},
        signals={signal.value: float(read(view, request)) for signal, read in _READ.items() if signal in reads},
        seen_s=view.seen_s,
    )
