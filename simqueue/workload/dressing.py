"""What a workload says about all of its requests: class, priority, patience, and the name of its clients' rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from simqueue.request import Request
from simqueue.traffic import RequestStream
from simqueue.workload.drawing import Draws
from simqueue.workload.people import ClassSettings
from simqueue.workload.settings import WorkloadSettings

if TYPE_CHECKING:
    from simqueue.workload.lengths.base import Floats

_AT_ONCE = 4096


def class_label(workload: str | None, name: str | None) -> str | None:
    """Return how a class of a workload is called in tables; either may have no name."""
    parts = [part for part in (workload, name) if part is not None]
    return "/".join(parts) if parts else None


@dataclass(frozen=True, slots=True)
class Dresser:
    """Completes the requests of one workload.

    Attributes
    ----------
    settings : WorkloadSettings
    draws : Draws
    name : str or None
        The workload's name where there are several; it becomes the class, or stands before it.
    """

    settings: WorkloadSettings
    draws: Draws
    name: str | None = None

    @property
    def changes_nothing(self) -> bool:
        """Whether requests are complete as they are."""
        keys = self.settings
        plain = keys.timeout_s is None and keys.retry is None and keys.max_concurrency is None
        return plain and self.name is None and keys.classes is None and keys.priority == 0

    @property
    def pool(self) -> str | None:
        """The name under which the rules of these clients are found, if there are any."""
        ruled = self.settings.retry is not None or self.settings.max_concurrency is not None
        return (self.name or "workload") if ruled else None

    def dressed(self, requests: RequestStream) -> RequestStream:
        """Return the requests, complete."""
        if self.changes_nothing:
            return requests
        if isinstance(requests, Sequence):
            return list(_Dressed(requests, self))
        return _Dressed(requests, self)

    def dress(self, request: Request, person: int) -> Request:
        """Return a request of a person, complete; all requests of a person have one class."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        if self.changes_nothing:
            return request
        classes = self.settings.classes
        if classes is None:
            return self._complete(request, None)
        uniform = float(self.draws.rng(f"class.{person}").random())
        return self._complete(request, self._class_of(np.array([uniform]))[0])

    def _class_of(self, uniforms: Floats) -> list[str]:
        """Return a class for each uniform number."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        classes = self.settings.classes or {}
        ends = np.cumsum([found.weight for found in classes.values()])
        chosen = np.searchsorted(ends, uniforms * ends[-1], side="right")
        names = list(classes)
        return [names[min(i, len(names) - 1)] for i in chosen.tolist()]

    def _complete(self, request: Request, class_name: str | None) -> Request:
        keys = self.settings
        own: ClassSettings | None = None if class_name is None else (keys.classes or {})[class_name]
        changed: dict[str, Any] = {"pool": self.pool}
        label = request.request_class if class_name is None else class_name
        if self.name is not None:
            label = class_label(self.name, label)
            names = {key: getattr(request, key) for key in ("request_id", "client", "session")}
            changed |= {key: None if value is None else f"{self.name}/{value}" for key, value in names.items()}
        changed["request_class"] = label
        priority = keys.priority if own is None or own.priority is None else own.priority
        if request.priority == 0:
            changed["priority"] = priority
        timeout_s = keys.timeout_s if own is None or own.timeout_s is None else own.timeout_s
        if timeout_s is not None and request.gives_up_s is None:
            changed["gives_up_s"] = request.arrival_s + timeout_s
        return replace(request, **changed)

    def uniforms(self) -> Iterator[float]:
        """Yield the numbers that decide on the class of one request after the other."""
        rng = self.draws.rng("class")
        while True:
            yield from rng.random(_AT_ONCE).tolist()


class _Dressed:
    """Requests completed as they are gone through."""

    def __init__(self, requests: RequestStream, dresser: Dresser) -> None:
        self._requests, self._dresser = requests, dresser

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        dresser = self._dresser
        if dresser.settings.classes is None:
            for request in self._requests:
                yield dresser._complete(request, None)
            return
        for request, uniform in zip(self._requests, dresser.uniforms(), strict=False):
            yield dresser._complete(request, dresser._class_of(np.array([uniform]))[0])
