"""What happens to the replicas of a fleet: at given times, and at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from simqueue.errors import MOST_SHOWN, Problem
from simqueue.names import unknown
from simqueue.settings import Settings

_LATEST: Final = 1e9
_MOST_NAMES: Final = 40
"""Names of replicas that a message lists, and among which the nearest is looked for."""


def _at() -> Any:
    return Field(ge=0, le=_LATEST, description="when, from the start of the run", json_schema_extra={"unit": "s"})


def _replica() -> Any:
    return Field(description="name of a replica: its group and its place in the group from 0, such as big-0")


def _time(description: str) -> Any:
    return Field(default=None, ge=0, le=_LATEST, description=description, json_schema_extra={"unit": "s"})


class FailSettings(Settings):
    """A replica fails: it loses its requests and its KV cache."""

    at_s: float = _at()
    replica: str = _replica()
    event: Literal["fail"]
    repair_s: float | None = _time("time until it is back; null: it stays down")


class DrainSettings(Settings):
    """A replica gets no new requests, and leaves when it has none."""

    at_s: float = _at()
    replica: str = _replica()
    event: Literal["drain"]
    deadline_s: float | None = _time("time until the requests that are left are ended; null: they are waited for")


class StartSettings(Settings):
    """A replica becomes ready, with an empty KV cache; if this is its first event, it was not there before."""

    at_s: float = _at()
    replica: str = _replica()
    event: Literal["start"]


EventSettings = Annotated[FailSettings | DrainSettings | StartSettings, Field(discriminator="event")]
"""One entry of `events`."""


def _listed(schema: dict[str, Any]) -> None:
    """Write the only value as a list: the key selects no other keys."""
    schema["enum"] = [schema.pop("const")]


class FailuresSettings(Settings):
    """Failures at random, of each replica by itself."""

    mtbf_s: float = Field(
        gt=0,
        le=_LATEST,
        description="mean time between failures: from the start or the repair of a replica to its next failure",
        json_schema_extra={"unit": "s"},
    )
    repair_s: float = Field(
        gt=0, le=_LATEST, description="mean time until a replica is back", json_schema_extra={"unit": "s"}
    )
    distribution: Literal["exponential"] = Field(
        "exponential", description="distribution of both times", json_schema_extra=_listed
    )


@dataclass(slots=True)
class _Life:
    """What the events so far say of a replica: from when on it is there or away, and what it does meanwhile."""

    state: Literal["there", "absent", "failed", "draining"]
    until_s: float = inf
    """When a replica that has failed is back, or one that drains has surely gone."""

    def at(self, now_s: float) -> None:
        """Go on to a time."""
        if self.until_s <= now_s:
            self.state = "there" if self.state == "failed" else "absent"
            self.until_s = inf

    def objection(self, event: Any) -> str | None:
        """Return why an event makes no sense now; None if it does."""
        if event.event != "start":
            return None if self.state == "there" else f"{event.replica} {_AWAY[self.state]} at that time"
        if self.state == "there":
            return f"{event.replica} is there already at that time"
        if self.state == "failed" and self.until_s < inf:
            return f"{event.replica} is being repaired at that time, until {self.until_s:g} s"
        if self.state == "draining":
            return f"{event.replica} can still be draining at that time; give its drain a deadline_s that ends before"
        return None

    def happens(self, event: Any) -> None:
        """Take an event into account."""
        if isinstance(event, FailSettings):
            self.state, wait_s = "failed", event.repair_s
        elif isinstance(event, DrainSettings):
            self.state, wait_s = "draining", event.deadline_s
        else:
            self.state, wait_s = "there", None
        self.until_s = inf if wait_s is None else event.at_s + wait_s


_AWAY = {"absent": "is not there", "failed": "is down", "draining": "is draining or has gone"}


def in_order(events: Sequence[Any]) -> list[tuple[int, Any]]:
    """Return the events by time, each with its place in the list; at the same time, as they are listed."""
    return sorted(enumerate(events), key=lambda found: (found[1].at_s, found[0]))


def unknown_replicas(strange: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the text of an error for each name that no replica has; only the first ones offer the nearest."""
    some, rest = names[:_MOST_NAMES], len(names) - _MOST_NAMES
    more = f", and {rest:,} more" if rest > 0 else ""
    each = dict.fromkeys(strange)
    return {
        name: f"{unknown('replica', name, some)}{more}" if number < MOST_SHOWN else "unknown replica"
        for number, name in enumerate(each)
    }


def event_problems(events: Sequence[Any], names: Sequence[str]) -> Iterator[Problem]:
    """Yield what is wrong with the events of a fleet: replicas that it has not got, and what cannot happen then."""
    known, lives = frozenset(names), dict[str, _Life]()
    strange = [event.replica for event in events if event.replica not in known]
    texts = unknown_replicas(strange, names)
    for place, event in in_order(events):
        if event.replica not in known:
            yield Problem(("events", place, "replica"), texts[event.replica])
            continue
        life = lives.setdefault(event.replica, _Life("absent" if event.event == "start" else "there"))
        life.at(event.at_s)
        objection = life.objection(event)
        if objection is None:
            life.happens(event)
        else:
            yield Problem(("events", place, "event"), objection)
