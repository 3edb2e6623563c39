"""Values from the command line (``--set a.b.c=VALUE``). They override the file before anything is validated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from simqueue.datafiles.limits import MOST_DEPTH
from simqueue.datafiles.yamlfile import parse_value
from simqueue.errors import InputError, KeyPath, show
from simqueue.names import unknown
from simqueue.printable import is_text
from simqueue.scenario.plaindata import plain
from simqueue.scenario.written import SHARED_KEYS, look_up
from simqueue.steptime import RooflineSettings

_MOST_DIGITS = 9
"""Digits of an index of a list; with more it is a key, which does not exist either."""

EVERY = "*"
"""Part of a path that stands for every key, or index, at its place."""

_MAKERS = {
    "policies": ("policy", ("scheduler", "engine")),
    "workloads": ("workload", ("arrivals", "trace", "requests", "users", "sessions")),
}
"""Group -> kind of its entries, and keys of which every entry has one: a flag cannot make an entry without one."""


@dataclass(frozen=True, slots=True)
class Override:
    """One value given outside the file.

    Attributes
    ----------
    path : tuple of str or int
        The keys down to the value.
    value : object
        Plain YAML data.
    flag : str
        What the user typed; errors name it.
    """

    path: KeyPath
    value: Any
    flag: str


def parse_override(text: str) -> Override:
    """Parse ``a.b.c=VALUE``. VALUE is YAML; whole numbers in the path are indices of lists, from 0.

    ``*`` as a part of the path stands for every key or index there: ``policies.*.max_num_seqs``.

    Raises
    ------
    InputError
        If there is no ``=``, a key is empty, or VALUE is not YAML.
    """
    if not isinstance(text, str):
        raise InputError(f"overrides: {show(text) or 'each'} must be a text, such as 'seed=3'")
    flag = f"--set {text}"
    if not is_text(text):
        raise InputError.at(flag, "not text in UTF-8")
    key, equals, value = text.partition("=")
    if not equals:
        raise InputError.at(flag, "write it as KEY=VALUE, for example --set workload.arrivals.rate_rps=20")
    return Override(parse_key(key, flag), parse_value(value, flag), flag)


def parse_key(text: str, place: str) -> KeyPath:
    """Return the path that a dotted key names; errors name `place`.

    Raises
    ------
    InputError
        If a part of it is empty, or there are too many.
    """
    names = text.strip().split(".")
    if not all(names):
        raise InputError.at(place, "a key is empty; write the path as a.b.c")
    if len(names) > MOST_DEPTH:
        raise InputError.at(place, f"{len(names):,} keys in each other; a path can have up to {MOST_DEPTH}")
    return tuple(_index_or_key(name) for name in names)


def override_seed(seed: int) -> Override:
    """Return the override of ``--seed N``."""
    return Override(("seed",), seed, f"--seed {show(seed)}")


def apply(data: dict[str, Any], overrides: Iterable[Override]) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    """Apply overrides to plain data.

    A top-level key that a policy has itself (`SHARED_KEYS`) is also set in that policy, so that the flag overrides the
    policy; in the same way a key of the scenario or of a policy is set in the groups of replicas that have it. Flags
    that name a policy are applied last and override all others, but for those that name a group; one with ``*`` names
    none. Missing mappings on the path are made; whether the result is a scenario is decided when it is validated.

    Parameters
    ----------
    data : dict
        Not changed.
    overrides : iterable of Override

    Returns
    -------
    data : dict
    flags : dict of path to str
        The flag that set each path.

    Raises
    ------
    InputError
        If a list item does not exist, or a path runs through a plain value.
    """
    result = plain(data)
    flags: dict[KeyPath, str] = {}
    ordered = sorted(overrides, key=lambda override: (_rank(override), EVERY not in override.path))
    for override in ordered:
        paths = expanded(result, override.path, override.flag)
        for path in [found for one in paths for found in (one, *_more_specific(result, one))]:
            written = _write(result, path, override)
            # a mapping given as a whole replaces what earlier flags set inside it
            flags = {known: flag for known, flag in flags.items() if known[: len(written)] != written}
            flags[written] = override.flag
        flags |= _with_kind(result, override)
    for override in ordered:
        _reject_new_name(data, result, override)
        _reject_new_group(data, override)
    return result, flags


def expanded(data: Any, path: KeyPath, place: str) -> list[KeyPath]:
    """Return the paths that a path with ``*`` stands for, in the order of the data; itself if it has none.

    Raises
    ------
    InputError
        If there is nothing that a ``*`` could stand for; it names `place`.
    """
    if EVERY not in path:
        return [path]
    depth = path.index(EVERY)
    around = look_up(data, path[:depth])[1]
    steps = list(around) if isinstance(around, dict) else list(range(len(around))) if isinstance(around, list) else []
    if not steps:
        where = ".".join(map(str, path[:depth])) or "the scenario"
        raise InputError.at(place, f"{where} has no keys that '*' could stand for")
    return [found for step in steps for found in expanded(data, (*path[:depth], step, *path[depth + 1 :]), place)]


def _with_kind(data: dict[str, Any], override: Override) -> dict[KeyPath, str]:
    """Add the kind of step time, a roofline, if a flag sets a key of a step time that is not given."""
    *where, key = override.path
    of_policy = len(where) == 3 and where[0] == "policies" and data.get("step_time") is None
    if where[-1:] != ["step_time"] or not (len(where) == 1 or of_policy) or key not in RooflineSettings.model_fields:
        return {}
    place = look_up(data, tuple(map(str, where)))[1]
    if not isinstance(place, dict) or "kind" in place:  # policies that are a list are reported later
        return {}
    place["kind"] = "roofline"
    return {(*where, "kind"): override.flag}


def _reject_new_name(before: dict[str, Any], after: dict[str, Any], override: Override) -> None:
    """Reject a key of a policy or workload that does not exist, unless the flags make a complete new one."""
    if EVERY in override.path:
        return  # it stands for those that exist
    group, name = str(override.path[0]), str(override.path[1]) if len(override.path) > 2 else ""
    kind, makers = _MAKERS.get(group, ("", ()))
    there = before.get(group)
    if not name or not kind or not isinstance(there, dict) or name in there:
        return
    made = look_up(after, (group, name))[1]  # None: a later flag has replaced the group
    if isinstance(made, dict) and not any(key in made for key in makers):
        raise InputError.at(override.flag, unknown(kind, name, there))


def _reject_new_group(before: dict[str, Any], override: Override) -> None:
    """Reject a key of a group of replicas that does not exist, where others do: its name is likely misspelt."""
    path = override.path
    depth = 2 if path[0] == "policies" else 0
    if path[depth : depth + 2] != ("fleet", "groups") or len(path) < depth + 4 or EVERY in path:
        return
    groups, name = look_up(before, tuple(map(str, path[: depth + 2])))[1], str(path[depth + 2])
    if isinstance(groups, dict) and name not in groups:
        raise InputError.at(override.flag, unknown("group", name, groups))


def _index_or_key(name: str) -> str | int:
    return int(name) if name.isascii() and name.isdecimal() and len(name) <= _MOST_DIGITS else name


def _rank(override: Override) -> int:
    """Return the place in the order of flags: those of the scenario, of policies, of groups."""
    path = override.path
    depth = 2 if path[0] == "policies" else 0
    return 2 if path[depth : depth + 2] == ("fleet", "groups") else depth // 2


def _more_specific(data: dict[str, Any], path: KeyPath) -> list[KeyPath]:
    """Return where else a key is written: in policies and groups of replicas, which override what is above them."""
    if path[0] == "policies":
        of_policy = path[:2]
        return _in_groups(data, of_policy, path[2:]) if len(path) > 2 else []
    if path[0] not in SHARED_KEYS:
        return []
    found = _in_groups(data, (), path)
    policies = data.get("policies")
    for name, own in policies.items() if isinstance(policies, dict) else ():
        if isinstance(own, dict):
            found += [("policies", name, *path)] if path[0] in own else []
            found += _in_groups(data, ("policies", name), path)
    return found


def _in_groups(data: dict[str, Any], above: KeyPath, key: KeyPath) -> list[KeyPath]:
    """Return the paths of a key in the groups of one fleet that have it."""
    groups = look_up(data, (*above, "fleet", "groups"))[1]
    if key[0] == "fleet" or not isinstance(groups, dict):
        return []
    owners = [name for name, own in groups.items() if isinstance(own, dict) and key[0] in own]
    return [(*above, "fleet", "groups", name, *key) for name in owners]


def _write(data: dict[str, Any], path: KeyPath, override: Override) -> KeyPath:
    """Set the value at `path` and return the path with the keys and indices of the data."""
    place: Any = data
    written: KeyPath = ()
    for step in path[:-1]:
        written = (*written, _step(place, step, written, override))
        if isinstance(place, dict) and place.get(written[-1]) is None:
            place[written[-1]] = {}
        place = place[written[-1]]
    written = (*written, _step(place, path[-1], written, override))
    place[written[-1]] = plain(override.value)
    return written


def _step(place: Any, step: str | int, above: KeyPath, override: Override) -> str | int:
    """Return `step` as a key or an index, as `place` needs it."""
    where = ".".join(map(str, above))
    if isinstance(place, dict):
        return str(step)
    if not isinstance(place, list):
        raise InputError.at(override.flag, f"'{where}' is {place!r}, which has no keys inside")
    if not isinstance(step, int):
        raise InputError.at(override.flag, f"'{where}' is a list; its items are named by number, from 0, not '{step}'")
    if step >= len(place):
        raise InputError.at(override.flag, f"'{where}' has {len(place)} items, counted from 0; there is no item {step}")
    return step
