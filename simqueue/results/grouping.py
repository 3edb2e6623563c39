"""Warnings that several policies or replications have in common, as one line each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_NUMBER: Final = re.compile(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w-])")
_MOST_NAMES: Final = 4


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning about a policy.

    Attributes
    ----------
    policy : str
    text : str
    replication : int or None
        None if it is about all replications.
    """

    policy: str
    text: str
    replication: int | None = None

    @property
    def kind(self) -> str:
        """The text without its numbers, which differ between runs; the whole text if it is about all replications."""
        return self.text if self.replication is None else _kind(self.text)


def grouped(warnings: Iterable[Warned], replications: Mapping[str, int]) -> Iterator[str]:
    """Yield one line per kind of warning, with the names of the policies, in the order of the first of each kind.

    Parameters
    ----------
    warnings : iterable of Warned
    replications : mapping of str to int
        The number of replications of each policy of the result.
    """
    groups: dict[tuple[bool, str], list[Warned]] = {}
    for one in warnings:
        groups.setdefault((one.replication is None, one.kind), []).append(one)
    for group in groups.values():
        yield f"{_names(group, replications)}: {group[0].text}{_differing(group, replications)}"


def _names(group: Sequence[Warned], replications: Mapping[str, int]) -> str:
    found: dict[str, set[int | None]] = {}
    for one in group:
        found.setdefault(one.policy, set()).add(one.replication)
    whole = all(None in runs or len(runs) == replications[name] for name, runs in found.items())
    if whole and len(found) == len(replications) > _MOST_NAMES:
        return f"all {len(found)} policies"
    return ", ".join(_name(name, runs, replications[name]) for name, runs in found.items())


def _name(policy: str, runs: set[int | None], total: int) -> str:
    return policy if None in runs or len(runs) == total else f"{policy} ({len(runs)} of {total} replications)"


def _differing(group: Sequence[Warned], replications: Mapping[str, int]) -> str:
    """Return of which run the numbers of the text are, if those of others differ."""
    first = group[0]
    if all(one.text == first.text for one in group):
        return ""
    run = f", replication {first.replication}" if replications[first.policy] > 1 else ""
    return f" (the numbers are those of {first.policy}{run})"


def common_notes(notes: Sequence[Sequence[str]]) -> list[str]:
    """Return the notes of several replications: each kind of note is told once, as it is in the first of them."""
    first: dict[str, int] = {}
    differing = set()
    told: dict[str, str] = {}
    for replication, lines in enumerate(notes):
        for line in lines:
            kind = _kind(line)
            if first.setdefault(kind, replication) == replication:
                told[line] = kind
            elif line not in told:
                differing.add(kind)
    return [
        f"{line} (the numbers are those of replication {first[kind]})" if kind in differing else line
        for line, kind in told.items()
    ]


def _kind(text: str) -> str:
    """Return a text without its numbers."""
    return _NUMBER.sub("#", text)
