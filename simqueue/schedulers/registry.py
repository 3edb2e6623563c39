"""The schedulers a scenario can name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from simqueue.errors import InputError
from simqueue.schedulers.base import Policy
from simqueue.schedulers.iteration import IterationPolicy

SCHEDULERS: dict[str, type[Policy]] = {}
"""Name in the scenario file -> policy class."""

P = TypeVar("P", bound=type[Policy])

_OF_OBJECTS = (
    *("depth", "observed", "kv", "door", "max_num_seqs", "step_tokens"),
    *("waiting", "clock", "running", "prefilling"),
)
"""What the compiled base reads from the object itself: a property or class attribute would be passed over."""
_OF_POLICIES = (
    *("waiting_count", "free_seats", "refusal", "add", "holds_seat", "cancel", "withdraw"),
    *("plan", "take", "commit", "state", "members", "check"),
)
"""What `Policy` only describes."""


def scheduler(name: str) -> Callable[[P], P]:
    """Register the decorated `Policy` class under `name`, as ``scheduler: name`` in a scenario.

    Raises
    ------
    InputError
        If another class already has that name, or the class leaves out what it must have, or has as an attribute of
        the class what belongs to its objects.
    """

    def register(policy: P) -> P:
        _check(policy)
        other = SCHEDULERS.get(name)
        if other is not None and other.__qualname__ != policy.__qualname__:
            raise InputError(f"scheduler '{name}' is already registered by {other.__qualname__}")
        SCHEDULERS[name] = policy
        return policy

    return register


def policy_rows() -> list[dict[str, str]]:
    """Return one row per scheduler, for ``simqueue list policies``."""
    return [
        {"scheduler": name, "what it does": policy.summary, "its keys": ", ".join(policy.Settings.model_fields)}
        for name, policy in sorted(SCHEDULERS.items())
    ]


def _check(policy: type[Policy]) -> None:
    """Refuse a class that could not work, and say why."""
    missing = [name for name in _OF_POLICIES if getattr(policy, name) is getattr(Policy, name)]
    if issubclass(policy, IterationPolicy) and policy.chunk is IterationPolicy.chunk:
        missing.append("chunk")
    if missing:
        raise InputError(f"policy {policy.__name__}: must define {', '.join(missing)}")
    own = [cls for cls in policy.__mro__ if not cls.__module__.startswith("simqueue.")]
    wrong = sorted(name for name in _OF_OBJECTS for cls in own if name in vars(cls))
    if wrong:
        raise InputError(f"policy {policy.__name__}: set {', '.join(wrong)} in __init__, not in the class")
