"""The request classes of a run: which requests belong to each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simqueue.results.metrics import Integers, Mask

ALL_CLASSES: Final = "all"
"""The class of all requests."""


class RequestClasses:
    """Masks of all requests, and of each class in order of appearance, if there are any.

    Requests of ``chat/gold`` belong to ``chat`` too. A class is looked up in numbers that stand for the labels, which
    are read once: a run can have many classes.

    Parameters
    ----------
    labels : array of shape (n_requests,)
        The class of each request, or None.
    """

    def __init__(self, labels: NDArray[Any]) -> None:
        self._labels = labels

    @cached_property
    def names(self) -> tuple[str | None, ...]:
        """All requests, then the classes; those to which other classes belong come first."""
        given = self._given
        if given in ([], [None]):
            return (ALL_CLASSES,)
        return (ALL_CLASSES, *(name for name in _outer_classes(given) if name not in given), *given)

    def mask(self, name: str | None) -> Mask | None:
        """Return a mask of the requests of a class; None if the run has no such class."""
        if name == ALL_CLASSES:
            return self._everything
        return self._mask(name) if name in self.names else None

    def masks(self) -> Iterator[tuple[str | None, Mask]]:
        """Yield the mask of all requests, then that of each class."""
        yield ALL_CLASSES, self._everything
        for name in self.names[1:]:
            yield name, self._mask(name)

    @property
    def _everything(self) -> Mask:
        return np.ones(len(self._labels), dtype=np.bool_)

    def _mask(self, name: str | None) -> Mask:
        belongs = np.array([_within(given, name) for given in self._given], dtype=np.bool_)
        return belongs[self._numbers]

    @cached_property
    def _given(self) -> list[str | None]:
        """The labels that occur."""
        return list(dict.fromkeys(self._labels))

    @cached_property
    def _numbers(self) -> Integers:
        """The place of each request's label among those that occur."""
        numbers = {label: number for number, label in enumerate(self._given)}
        return np.array([numbers[label] for label in self._labels], dtype=np.int64)


def _outer_classes(names: Sequence[str | None]) -> list[str]:
    """Return the classes to which other classes belong, such as ``chat`` for ``chat/gold``, without repetition."""
    return list(dict.fromkeys(name.partition("/")[0] for name in names if name is not None and "/" in name))


def _within(label: str | None, name: str | None) -> bool:
    return label == name or (label is not None and name is not None and label.startswith(f"{name}/"))
