"""A product with several policies: a router that hands every question on to the one that its settings name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from random import Random

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Choice, Ranking, Router, Signal, Spread, View


class Several(Router):
    """A router whose settings name a policy. Subclasses say which in `made`."""

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        self.policy = self.made()
        """The router that decides."""

    @abstractmethod
    def made(self) -> Router:
        """Return the policy that the settings name; it shares the random stream."""

    @property
    def reads(self) -> frozenset[Signal]:
        """The signals that the policy reads."""
        return self.policy.reads

    @property
    def is_independent(self) -> bool:
        """Whether the policy's choices follow from the requests before alone."""
        return self.policy.is_independent

    @property
    def spread(self) -> Spread:
        """How the policy spreads the work."""
        return self.policy.spread

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return what the policy would choose."""
        return self.policy.rank(request, replicas, now_s)

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Return what the policy chooses."""
        return self.policy.choose(request, replicas, now_s)

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Tell the policy."""
        self.policy.dispatched(request, replica, now_s)

    def first_token(self, request: Request, replica: View, now_s: float) -> None:
        """Tell the policy."""
        self.policy.first_token(request, replica, now_s)

    def finished(self, request: Request, replica: View, now_s: float, *, tokens: int, served: bool) -> None:
        """Tell the policy."""
        self.policy.finished(request, replica, now_s, tokens=tokens, served=served)

    def joined(self, replica: View, now_s: float) -> None:
        """Tell the policy."""
        self.policy.joined(replica, now_s)

    def left(self, replica: View, now_s: float) -> None:
        """Tell the policy."""
        self.policy.left(replica, now_s)
