"""What was written down for a scenario, and where: in a file, in Python, by flags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from simqueue.datafiles.yamlfile import Document
from simqueue.errors import InputError, KeyPath, Problem, show

SYSTEM_KEYS = (
    "gpu",
    "tensor_parallel",
    "usd_per_gpu_hour",
    "step_time",
    "step_time_factor",
    "front_end",
    "kv_cache",
    "max_model_len",
)
"""Top-level keys that a policy, and a group of its replicas, can also have for itself."""

SHARED_KEYS = (*SYSTEM_KEYS, "fleet")
"""Top-level keys that a policy can also have for itself."""

_TOP = (0, 0)
"""Line and column of problems without a line, which are reported first."""


@dataclass(frozen=True, slots=True)
class Written:
    """The keys that were written down, each with the place where it was written.

    Attributes
    ----------
    document : Document
        The keys with the flags applied, and the lines of those in the file. Without a file its name is empty.
    flags : mapping of path to str
        The flag that set a path.
    base_dir : Path
        Where relative paths start, an absolute path: the folder of the file, else the current one.
    group : tuple of str or int
        Path of the group of replicas that this is about; its keys stand in for those of its policy. Empty: none.
    """

    document: Document
    flags: Mapping[KeyPath, str] = field(default_factory=dict)
    base_dir: Path = field(default_factory=Path.cwd)
    group: KeyPath = ()

    @property
    def keys(self) -> Mapping[str, Any]:
        """The keys that were written down: all others have their default."""
        return self.document.data

    @property
    def source(self) -> str:
        """Where a key was written that no flag has set: ``file``, or ``given`` in Python."""
        return "file" if self.document.file else "given"

    def has(self, path: KeyPath) -> bool:
        """Whether there is something at this path, in mappings all the way."""
        place: Any = self.keys
        for step in path:
            if not isinstance(place, dict) or step not in place:
                return False
            place = place[step]
        return True

    def flag_for(self, path: KeyPath) -> str | None:
        """Return the flag that set the value at `path`, or a mapping around it."""
        return next((self.flags[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.flags), None)

    def fleet_path(self, policy: str) -> KeyPath:
        """Return where the fleet of a policy is: in the policy, or for all policies."""
        own: KeyPath = ("policies", policy, "fleet")
        return own if self.has(own) else ("fleet",)

    def of_group(self, policy: str, group: str) -> Self:
        """Return the same for a group of a policy's replicas: errors are located there first."""
        return replace(self, group=(*self.fleet_path(policy), "groups", group))

    def path_for(self, policy: str, key: KeyPath) -> KeyPath:
        """Return where a key of a policy was written: in its group, in itself, for all; else where it belongs."""
        own: KeyPath = ("policies", policy)
        for depth in (len(key), 1):  # the key itself, or the mapping around it
            for above in filter(None, (self.group, own)):
                if self.has((*above, *key[:depth])):
                    return (*above, *key)
            if self.has(key[:depth]):
                return key
        return key if key[0] in ("model", *SHARED_KEYS) else (*own, *key)

    @contextmanager
    def locating(self, policy: str | None = None) -> Iterator[None]:
        """Add file and line, or the flag, to errors raised inside that are about a key.

        Parameters
        ----------
        policy : str, optional
            The errors are about keys of this policy, or those of the scenario that the policy has not got itself.
        """
        try:
            yield
        except InputError as error:
            if not any(problem.path and not problem.place for problem in error.problems):
                raise
            raise self.complaint(self.problems(error, policy)) from None

    def problems(self, error: InputError, policy: str | None = None) -> list[Problem]:
        """Return the problems of an error with full paths; see `locating`."""
        return [
            replace(problem, path=self.path_for(policy, problem.path))
            if policy is not None and problem.path and not problem.place
            else problem
            for problem in error.problems
        ]

    def complaint(self, problems: Iterable[Problem]) -> InputError:
        """Return the error that reports problems, each with its place, in the order of the file."""
        together: dict[tuple[KeyPath, str], Problem] = {}
        for problem in dict.fromkeys(problems):
            known = together.get((problem.path, problem.place))
            text = problem.text if known is None or not problem.path else f"{known.text}; {problem.text}"
            together[problem.path, problem.place] = replace(problem, text=text)
        placed = sorted(map(self._placed, together.values()), key=lambda found: found[0])
        return InputError.of(problem for _, problem in placed)

    def _placed(self, problem: Problem) -> tuple[tuple[int, int], Problem]:
        """Return line and column to sort by, and the problem with its place and the value that was written there."""
        path = problem.path
        if problem.place or not path:
            return _TOP, problem
        flag = self.flag_for(path)
        if flag and flag == self.flags.get(path) and flag.startswith(f"--set {'.'.join(map(str, path))}="):
            return _TOP, Problem((), problem.text, place=flag)  # the flag itself shows path and value
        value = self._shown(path) if problem.value is None else problem.value
        problem = replace(problem, value=value)
        if flag is None:
            flag = self._maker(path)
        if flag:
            return _TOP, replace(problem, place=flag)
        position = self.document.position(path)
        place = f"{self.document.file}:{position.line}" if self.document.keys else ""  # Python code has no lines here
        text = f"{problem.text}{self._cause(path)}"
        return (position.line, position.column), replace(problem, text=text, place=place)

    def _shown(self, path: KeyPath) -> str | None:
        is_there, value = look_up(self.keys, path)
        return show(value) if is_there else None

    def _maker(self, path: KeyPath) -> str | None:
        """Return the flag that made the value, or the mapping around it; None if the file did."""
        for around in (path, path[:-1]):
            if not around or around in self.document.keys:
                return None
            made = self._flags_inside(around)
            if made:
                return made[0]
        return None

    def _cause(self, path: KeyPath) -> str:
        """Name the flags that a problem can come from, although none of them set the value itself."""
        # a default breaks a rule because of a key beside it
        inner = self._flags_inside(path if look_up(self.keys, path)[0] else path[:-1])
        return f" (with {', '.join(inner)})" if inner else ""

    def _flags_inside(self, path: KeyPath) -> list[str]:
        return list(dict.fromkeys(flag for where, flag in self.flags.items() if is_below(where, path)))


def is_below(path: KeyPath, above: KeyPath) -> bool:
    """Whether `path` leads to something inside the value at `above`."""
    return len(path) > len(above) and path[: len(above)] == above


def look_up(data: Any, path: KeyPath) -> tuple[bool, Any]:
    """Return whether there is a value at `path`, and the value."""
    place = data
    for step in path:
        if not has(place, step):
            return False, None
        place = place[step]
    return True, place


def has(place: Any, step: str | int) -> bool:
    """Whether a mapping has this key, or a list this item."""
    if isinstance(place, dict):
        return step in place
    return isinstance(place, list) and isinstance(step, int) and step < len(place)
