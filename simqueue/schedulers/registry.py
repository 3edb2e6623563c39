"""The schedulers a scenario can name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from simqueue.errors import InputError
from simqueue.names import PLAIN_RULE, is_plain
from simqueue.registered import is_own, is_same
from simqueue.schedulers.base import Policy
from simqueue.schedulers.declarations import ALL
from simqueue.schedulers.iteration import IterationPolicy

SCHEDULERS: dict[str, type[Policy]] = {}
"""Name in the scenario file -> policy class."""

P = TypeVar("P", bound=type[Policy])

_OF_OBJECTS = ("depth", "observed", "walks", "settings", "kv", "limits", "seats", "waiting", "running", "prefilling")
"""What the compiled base reads from the object itself: a property or class attribute would have no effect."""
_ABSTRACT = (
    *("waiting_count", "free_seats", "rejection", "add", "cancel"),
    *("plan", "take", "commit", "state", "members", "check"),
)
"""What `Policy` only describes."""
_RULES = ("budget", "chunk")
"""What `IterationPolicy` only describes."""
_SHOWN = ("Settings", "summary")


def scheduler(name: str) -> Callable[[P], P]:
    """Register the decorated `Policy` class under `name`, as ``scheduler: name`` in a scenario.

    Raises
    ------
    InputError
        If the name is not valid, another class has it, or what is decorated is not a `Policy` class. Also if the class
        lacks a method that it must have, has as an attribute of the class what belongs to its objects, or declares
        rules as steady that it does not define.
    """
    _check_name(name)

    def register(policy: P) -> P:
        if not (isinstance(policy, type) and issubclass(policy, Policy)):
            raise InputError(f"scheduler '{name}': {policy!r} must be a class derived from Policy")
        _check(policy)
        other = SCHEDULERS.get(name)
        if other is not None and not is_same(policy, other):
            raise InputError(f"scheduler '{name}' is already registered by {other.__module__}.{other.__qualname__}")
        SCHEDULERS[name] = policy
        return policy

    return register


def policy_rows() -> list[dict[str, str]]:
    """Return one row per scheduler, for ``simqueue list policies``."""
    return [
        {"scheduler": name, "what it does": policy.summary, "its keys": ", ".join(policy.Settings.model_fields)}
        for name, policy in sorted(SCHEDULERS.items())
    ]


def is_built_in(name: str) -> bool:
    """Return whether the scheduler of this name is one of this package."""
    policy = SCHEDULERS.get(name)
    return policy is not None and is_own(policy)


def _check_name(name: object) -> None:
    """Reject what a scenario could not name, or a decorator without its name."""
    if not isinstance(name, str):
        raise InputError(f"scheduler: {name!r} must be a name, such as @scheduler('my-policy')")
    if not is_plain(name):
        raise InputError(f"scheduler {name!r}: {PLAIN_RULE}")


def _check(policy: type[Policy]) -> None:
    """Reject a class that could not work, and say why."""
    if missing := _missing(policy):
        raise InputError(f"policy {policy.__name__}: must define {', '.join(missing)}")
    own = [cls for cls in policy.__mro__ if not is_own(cls)]
    wrong = sorted(name for name in _OF_OBJECTS for cls in own if name in vars(cls))
    if wrong:
        raise InputError(f"policy {policy.__name__}: set {', '.join(wrong)} in __init__, not in the class")
    for cls in own:
        _check_declarations(cls)


def _missing(policy: type[Policy]) -> list[str]:
    """Return the names that a policy must define and does not."""
    missing = _inherited(policy, Policy, _ABSTRACT)
    if issubclass(policy, IterationPolicy):
        missing += _inherited(policy, IterationPolicy, _RULES)
    return [*missing, *(name for name in _SHOWN if not hasattr(policy, name))]


def _inherited(policy: type, base: type, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if getattr(policy, name) is getattr(base, name)]


def _check_declarations(cls: type) -> None:
    declared = vars(cls).get("steady_rules", ())
    if not isinstance(declared, tuple) or not all(isinstance(name, str) for name in declared):
        raise InputError(f"policy {cls.__name__}: steady_rules = {declared!r}: must be a tuple of names of methods")
    for name in declared:
        if name != ALL and name not in vars(cls):
            raise InputError(f"policy {cls.__name__}: steady_rules names '{name}', which the class does not define")
