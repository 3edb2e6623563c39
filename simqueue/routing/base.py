"""The contract of routers: which replica gets a request.

A router is pure logic over what it is told. It never sees the simulation's clock or events. It is asked `choose`, and
then told what happened: `dispatched`, `first_token`, `finished`, `joined`, `left`. What it knows of a replica is a
`View`: its own count of requests in flight, which is never stale, and signals of the engine, which may have an age.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import ClassVar, Literal, NamedTuple, Protocol

from simqueue.errors import RunError
from simqueue.request import Request
from simqueue.settings import Settings

AnySettings = Settings


class Signal(StrEnum):
    """What an engine reports of itself."""

    RUNNING = "running"
    """Requests that hold a seat."""
    WAITING = "waiting"
    """Requests in the queue of the engine."""
    KV_USED = "kv_used"
    """Share of the KV pool in use, from 0 to 1."""
    TOKENS = "tokens"
    """Prompt and output tokens of the requests that run or wait, as far as they exist."""
    CACHED = "cached"
    """What the prefix cache has of a prompt (KV events): always as it is now."""


class View(Protocol):
    """What a router knows of a replica. The attributes of the first group never have an age.

    Attributes
    ----------
    number : int
        Place of the replica in the fleet, from 0; it identifies it.
    name : str
        Such as ``big-0``: group and place in the group; routers that hash addresses hash this.
    group : str
    weight : float
        Relative share of the traffic that is meant for it.
    block_size : int
        Tokens in a block of its KV cache.
    max_num_batched_tokens : int or None
        Token budget of a step; None: no limit.
    kv_tokens : int
        Tokens that its KV pool holds.
    healthy : bool
        Whether the router may choose it: it is ready, as far as the router knows.
    in_flight, in_flight_prompt_tokens, in_flight_tokens : int
        Requests that the router sent there and that have not ended, their prompt tokens, and their prompt and output
        tokens.
    free_seats : int
        Requests that could run at once; live, for a central queue.
    running, waiting : int
    kv_used : float
    tokens : int
        See `Signal`; as old as the signals of the fleet say.
    seen_s : float
        When the engine was last looked at, in seconds: the present where signals have no age, and the oldest look where
        they differ. Some routers do not trust signals that are too old.
    """

    number: int
    name: str
    group: str
    weight: float
    healthy: bool
    in_flight: int
    in_flight_prompt_tokens: int
    in_flight_tokens: int

    @property
    def block_size(self) -> int: ...  # noqa: D102 - see the class
    @property
    def max_num_batched_tokens(self) -> int | None: ...  # noqa: D102
    @property
    def kv_tokens(self) -> int: ...  # noqa: D102
    @property
    def free_seats(self) -> int: ...  # noqa: D102
    @property
    def running(self) -> int: ...  # noqa: D102
    @property
    def waiting(self) -> int: ...  # noqa: D102
    @property
    def kv_used(self) -> float: ...  # noqa: D102
    @property
    def tokens(self) -> int: ...  # noqa: D102
    @property
    def seen_s(self) -> float: ...  # noqa: D102

    def cached_tokens(self, request: Request) -> int:
        """Return how many tokens of the prompt its prefix cache has now."""


class Choice(NamedTuple):
    """Where a request goes.

    Attributes
    ----------
    replica : int or None
        Number of the replica. None: the request waits at the router (it is asked again when anything changes), or is
        refused.
    reason : str
        A short word of the router's, such as ``hit`` or ``least loaded``; a column of the requests table.
    refused : bool
        Whether the client gets an error (429) instead.
    """

    replica: int | None
    reason: str
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a router would choose, and why. Made for explanations and comparisons with recordings.

    Attributes
    ----------
    chances : mapping of int to float
        Probability of each replica that can be chosen; the others are left out. Empty: it waits or is refused.
    reason : str
        As in `Choice`.
    scores : mapping of str to mapping of int to float
        By the name of a quantity, its value for each replica.
    """

    chances: Mapping[int, float]
    reason: str
    scores: Mapping[str, Mapping[int, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Age:
    """How old a signal can be.

    Attributes
    ----------
    every_s : float
        Time between two looks at the engine; 0: as it is now.
    delay_s : float
        From a look until the router has the value.
    """

    every_s: float = 0.0
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a router deals with replicas that fail; None: not at all, or at once.

    Attributes
    ----------
    retries : int
        Further attempts for a request whose attempt failed.
    retries_refused : bool
        Whether an attempt that a full queue refuses counts as failed; else the request is rejected.
    first_wait_s, wait_factor, longest_wait_s, jitter : float
        Wait before the first of them, its growth per attempt, its limit, and by which share it varies (uniformly).
    check_every_s, check_timeout_s : float or None
        Health checks; None: what happens to a replica is known at once.
    check_failures, check_successes : int
        Checks in a row after which a replica counts as down or up.
    breaker_failures : int or None
        Failed attempts in a row after which a replica gets no requests for a time; None: no circuit breaker.
    breaker_window_s, breaker_open_s : float
        Time in which they count, and how long it gets none.
    breaker_successes : int
        Answers after that until it counts as well again.
    source : str
        Where the numbers are from.
    """

    retries: int = 5
    retries_refused: bool = False
    first_wait_s: float = 0.0
    wait_factor: float = 1.0
    longest_wait_s: float = 0.0
    jitter: float = 0.0
    check_every_s: float | None = None
    check_timeout_s: float = 0.0
    check_failures: int = 1
    check_successes: int = 1
    breaker_failures: int | None = None
    breaker_window_s: float = 0.0
    breaker_open_s: float = 0.0
    breaker_successes: int = 1
    source: str = ""

    def wait_s(self, failed: int, random: Random) -> float:
        """Return the wait after this many failed attempts (>= 1); draws one random number if there is jitter."""
        wait_s = min(self.first_wait_s * self.wait_factor ** (failed - 1), self.longest_wait_s)
        return wait_s * (1 + self.jitter * (2 * random.random() - 1)) if self.jitter else wait_s


Spread = Literal["equal shares", "shares by weight", "by load", "unknown"]
"""Each replica has a fixed share of the requests, whatever it can do; or a slower one gets less; or it is not known."""


class Router:
    """Chooses a replica for each request. Constructed as ``RouterClass(settings, random)``, once per run.

    Parameters
    ----------
    settings : Settings
        An object of the class's `Settings`.
    random : Random
        A stream of random numbers of its own. Only ``random.random()`` is used, which is the same in all versions.
    """

    Settings: ClassVar[type[Settings]]
    """Scenario keys of this router, besides ``kind``."""
    summary: ClassVar[str]
    """One line for ``simqueue list routers``."""
    checked: ClassVar[str] = ""
    """What its choices were checked against, in a few words; empty: only what this package says of it."""
    ages: ClassVar[Mapping[Signal, Age]] = {}
    """Ages of signals where a scenario gives none: the product's numbers."""
    recovery: ClassVar[Recovery] = Recovery()
    """What it does about failures where a scenario says nothing."""
    draws: ClassVar[bool] = True
    """Whether it can need random numbers; if not, replications of the same requests would all be the same run."""
    holds: ClassVar[bool] = False
    """Whether requests wait at the router while no replica is ready; else such an attempt fails."""
    wants_first_tokens: ClassVar[bool] = False
    """Whether it is told of first tokens."""

    def __init__(self, settings: AnySettings, random: Random) -> None:
        self.settings = settings
        self.random = random

    @property
    def reads(self) -> frozenset[Signal]:
        """The signals of engines that it reads."""
        return frozenset()

    @property
    def spread(self) -> Spread:
        """How it spreads the work, as far as the capacity of a fleet needs to know."""
        return "unknown"

    @property
    def names(self) -> Sequence[str]:
        """The names of replicas and groups that its keys contain; a scenario checks that there are such."""
        return ()

    @property
    def is_independent(self) -> bool:
        """Whether its choices follow from the requests before alone, whatever happens to them at the replicas."""
        return False

    # -- questions -----------------------------------------------------------------------------------------------

    @abstractmethod
    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return what would be chosen for `request`. Changes nothing, and draws no random number.

        Parameters
        ----------
        request : Request
        replicas : sequence of View
            All replicas that are not gone, in the router's own order ("first" means this order). At least one is
            healthy.
        now_s : float
        """
        raise NotImplementedError

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Return where `request` goes, by the chances of `rank`. Changes nothing but the random stream.

        A class can do the same in less time.
        """
        found = self.rank(request, replicas, now_s)
        if not isinstance(found, Ranking) or any(not chance > 0 for chance in found.chances.values()):
            raise RunError(f"{type(self).__name__}: rank gives {found!r}: must be a Ranking with chances above 0")
        if not found.chances:
            return Choice(None, found.reason)
        return Choice(drawn(self.random, found.chances), found.reason)

    # -- what happens --------------------------------------------------------------------------------------------

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Learn that `request` goes to `replica` now. All that a decision changes is changed here."""

    def first_token(self, request: Request, replica: View, now_s: float) -> None:
        """Learn that the first token of `request` was made; only if `wants_first_tokens`."""

    def finished(self, request: Request, replica: View, now_s: float, *, tokens: int, served: bool) -> None:
        """Learn that `request` has left `replica` with this many output tokens; `served`: with all of them."""

    def joined(self, replica: View, now_s: float) -> None:
        """Learn that a replica is new, with an empty cache, or back after a failure."""

    def left(self, replica: View, now_s: float) -> None:
        """Learn that a replica is gone for good."""


def answer(router: Router, request: Request, replicas: Sequence[View], now_s: float) -> tuple[object, str, bool]:
    """Ask a router and return the parts of its choice; RunError if it gives something else."""
    choice: object = router.choose(request, replicas, now_s)
    if not isinstance(choice, Choice):
        raise RunError(f"{type(router).__name__}: choose gives {choice!r}: must be a Choice")
    return choice.replica, choice.reason, choice.refused


def healthy(replicas: Sequence[View]) -> list[View]:
    """Return the replicas that can be chosen."""
    return [replica for replica in replicas if replica.healthy]


def evenly(replicas: Sequence[View]) -> dict[int, float]:
    """Return equal chances for all of these replicas."""
    share = 1 / len(replicas)
    return {replica.number: share for replica in replicas}


def drawn(random: Random, chances: Mapping[int, float]) -> int:
    """Draw a replica; no random number is used if there is only one."""
    numbers = list(chances)
    if len(numbers) == 1:
        return numbers[0]
    left = random.random() * sum(chances.values())
    for number in numbers:
        left -= chances[number]
        if left < 0:
            return number
    return numbers[-1]


def below(random: Random, n: int) -> int:
    """Draw a whole number from 0 to ``n - 1``."""
    return int(random.random() * n)
