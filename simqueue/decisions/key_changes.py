"""Which keys of two scenarios have different values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from simqueue.scenario.paths import rooted
from simqueue.scenario.values import dotted, leaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from simqueue.decisions.recorded import Recorded

ABSENT: Final = "(absent)"
_DIGITS: Final = 12
_NOT_COMPARED: Final = ("name",)


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A key with another value.

    Attributes
    ----------
    key : str
        Dotted; ``version`` is that of the package.
    before, after : object
        Plain values; `ABSENT` where one scenario has no such key.
    """

    key: str
    before: Any
    after: Any

    def plain(self) -> dict[str, Any]:
        """Return plain values; a side that has no such key is left out."""
        sides = {"before": self.before, "after": self.after}
        return {"key": self.key, **{side: value for side, value in sides.items() if value is not ABSENT}}


def key_changes(before: Recorded, after: Recorded) -> tuple[KeyChange, ...]:
    """Return the keys that differ, in the order of the later scenario, and the version if it differs.

    Paths are the same if they lead to the same file; a file with another content is listed by its hash. A key that one
    of the two does not have is left out where the other one has the plain default: another version knew it. Policies
    that only one of the two has are left out.
    """
    both = [name for name in before.policies if name in after.policies]
    old, new = _flat(before, both), _flat(after, both)
    version = [KeyChange("version", before.version, after.version)] if before.version != after.version else []
    keys = dict.fromkeys([*new, *old])
    changes = [KeyChange(key, old.get(key, ABSENT), new.get(key, ABSENT)) for key in keys]
    differ = [one for one in changes if one.before != one.after and not _is_only_new(one, before, after)]
    return (*version, *(one for one in differ if not _is_opened(one, keys)), *_content_changes(before, after))


def _content_changes(before: Recorded, after: Recorded) -> Iterator[KeyChange]:
    """Yield the keys of files that were read by both and have other contents."""
    for key, old in before.contents.items():
        new = after.contents.get(key, old)
        if new != old:
            yield KeyChange(f"content of {key}", f"sha256:{old[:_DIGITS]}", f"sha256:{new[:_DIGITS]}")


def _is_only_new(change: KeyChange, before: Recorded, after: Recorded) -> bool:
    """Return whether one version did not know the key, and the other one has its default."""
    if change.before is ABSENT:
        return change.key in after.defaults
    return change.after is ABSENT and change.key in before.defaults


def _is_opened(change: KeyChange, keys: Iterable[str]) -> bool:
    """Return whether a key is null in one scenario and a mapping in the other, whose keys are listed."""
    is_null = (change.before, change.after) in ((None, ABSENT), (ABSENT, None))
    return is_null and any(key.startswith(f"{change.key}.") for key in keys)


def _flat(found: Recorded, policies: Sequence[str]) -> dict[str, Any]:
    """Return the values by dotted key."""
    values: Mapping[str, Any] = rooted(found.scenario, found.base_dir)
    kept = {key: value for key, value in values.items() if key not in _NOT_COMPARED}
    kept["policies"] = {name: kept["policies"][name] for name in policies}
    return {dotted(path): _at(kept, path) for path in leaves(kept)}


def _at(values: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        values = values[step]
    return values
