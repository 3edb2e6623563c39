"""The keys of a workload that hold for all of its requests: class, priority, timeout, and the rules of its clients."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from simqueue.request import Request
from simqueue.traffic import RequestStream
from simqueue.workload.clients import ClassSettings, class_label
from simqueue.workload.settings import WorkloadSettings
from simqueue.workload.streams import Draws

_AT_ONCE = 4096
_NO_CLASS = ClassSettings(weight=1.0)
"""A class without keys of its own: those of the workload hold."""


@dataclass(frozen=True, slots=True)
class RequestAttributes:
    """Adds the keys of one workload to its requests.

    Attributes
    ----------
    settings : WorkloadSettings
    draws : Draws
    name : str or None
        The workload's name if there are several. It becomes the class, or the first part of the class.
    """

    settings: WorkloadSettings
    draws: Draws
    name: str | None = None

    @property
    def changes_nothing(self) -> bool:
        """Whether requests stay as they are."""
        keys = self.settings
        plain = keys.timeout_s is None and keys.retry is None and keys.max_concurrency is None
        return plain and self.name is None and keys.classes is None and keys.priority == 0

    @property
    def pool(self) -> str | None:
        """The name of the rules of these clients (see `simqueue.traffic.Traffic.rules`), or None without rules."""
        ruled = self.settings.retry is not None or self.settings.max_concurrency is not None
        return (self.name or "workload") if ruled else None

    def added_to(self, requests: RequestStream) -> RequestStream:
        """Return the requests with the attributes of the workload."""
        if self.changes_nothing:
            return requests
        changed = _ChangedRequests(requests, self)
        return list(changed) if isinstance(requests, Sequence) else changed

    def added_to_turn(self, request: Request, session: int) -> Request:
        """Return a request of a session; all requests of one session have one class."""
        if self.changes_nothing:
            return request
        if self.settings.classes is None:
            return self.changed(request, None)
        return self.changed(request, float(self.draws.rng(f"class.{session}").random()))

    def changed(self, request: Request, uniform: float | None) -> Request:
        """Return a request of the class that a uniform number selects; None if the workload has no classes."""
        keys = self.settings
        class_name, own = (None, _NO_CLASS) if uniform is None else self._class_of(uniform)
        label = request.request_class if class_name is None else class_name
        changed: dict[str, Any] = {"pool": self.pool, "request_class": class_label(self.name, label)}
        if self.name is not None:
            changed |= _named(self.name, request)
        if request.priority == 0:
            changed["priority"] = keys.priority if own.priority is None else own.priority
        timeout_s = keys.timeout_s if own.timeout_s is None else own.timeout_s
        if timeout_s is not None and request.gives_up_s is None:
            changed["gives_up_s"] = request.arrival_s + timeout_s
        return replace(request, **changed)

    def _class_of(self, uniform: float) -> tuple[str, ClassSettings]:
        classes = list((self.settings.classes or {}).items())
        ends = list(accumulate(found.weight for _, found in classes))
        return classes[min(bisect_right(ends, uniform * ends[-1]), len(classes) - 1)]


def _named(workload: str, request: Request) -> dict[str, str | None]:
    """Return the names of a request with the workload's name before them, so that those of two workloads differ."""
    names = {key: getattr(request, key) for key in ("request_id", "client", "session")}
    return {key: None if name is None else f"{workload}/{name}" for key, name in names.items()}


class _ChangedRequests:
    """Requests that get their attributes while they are iterated over."""

    def __init__(self, requests: RequestStream, attributes: RequestAttributes) -> None:
        self._requests, self._attributes = requests, attributes

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        attributes = self._attributes
        uniforms = _nones() if attributes.settings.classes is None else _uniforms(attributes.draws)
        for request, uniform in zip(self._requests, uniforms, strict=False):
            yield attributes.changed(request, uniform)


def _nones() -> Iterator[None]:
    while True:
        yield None


def _uniforms(draws: Draws) -> Iterator[float]:
    """Yield the number that selects the class of each request in turn."""
    rng = draws.rng("class")
    while True:
        yield from rng.random(_AT_ONCE).tolist()
