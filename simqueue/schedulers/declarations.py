"""What a class declares about the rules that it defines, so that a policy of one's own is right by default.

A run is fast because equal steps are folded into one event: a plan says in how many steps in a row it holds. That is
right only if every rule is *steady*: while equal steps repeat, its answers stay the same. Rules that look at seats, the
number of decoding requests and the head of the queue are steady. A rule on blocks is steady only if fewer free blocks
make it stricter, since free blocks become fewer while steps repeat. A rule that looks at the time, the lengths of
contexts or the length of the queue is not steady.

Only the class that defines a rule knows. So each class names its steady rules in ``steady_rules``, and a subclass
inherits nothing for the rules that it overrides. A policy with undeclared rules is planned at every step. In the same
way a capacity law applies only to the very class that describes itself by `Policy.batching`.
"""

from __future__ import annotations

from collections.abc import Iterator

from simqueue.errors import RunError
from simqueue.schedulers.base import Batching, Policy
from simqueue.schedulers.waiting import WaitingQueue

ALL = "*"
"""In `Policy.steady_rules`: every rule that the class defines."""
_SHOWN = frozenset(
    {"Settings", "summary", "steady_rules", "counts_idle_slots", "keeps_finished", "batching", "waits_for", "remarks"}
)
_DESCRIPTORS = (property, classmethod, staticmethod)
_STEADY = frozenset({"victim", "state", "members", "check"})
"""Need no declaration: a step in which a request is preempted is never repeated, and checks decide nothing."""


def undeclared_rules(policy: Policy) -> list[str]:
    """Return the rules, as ``Class.name``, that are overridden without being declared as steady."""
    queue = getattr(policy, "waiting", None)
    own = [f"{type(policy).__name__}.{name}" for name in _set_on_object(policy)]
    of_queue = _undeclared(type(queue)) if isinstance(queue, WaitingQueue) else ()
    return [*own, *_undeclared(type(policy)), *of_queue]


def declared_batching(policy: Policy) -> Batching | None:
    """Return how `policy` batches if the class that says so is the last one that changes a rule, else None.

    Raises
    ------
    RunError
        If the answer is not a `Batching`.
    """
    queue = getattr(policy, "waiting", None)
    if _set_on_object(policy) or (isinstance(queue, WaitingQueue) and list(_undeclared(type(queue)))):
        return None
    classes = type(policy).__mro__
    for position, cls in enumerate(classes):
        if "batching" in vars(cls):
            answer: object = policy.batching()
            if answer is not None and not isinstance(answer, Batching):
                raise RunError(f"{type(policy).__name__}.batching gives {answer!r}: must be a Batching, or None")
            return answer
        if any(name not in _SHOWN for name in _rules(cls, classes[position + 1 :])):
            return None
    return None


def _undeclared(kind: type) -> Iterator[str]:
    classes = kind.__mro__
    for position, cls in enumerate(classes):
        declared = vars(cls).get("steady_rules", ())
        if ALL in declared:
            continue
        for name in _rules(cls, classes[position + 1 :]):
            if name not in declared and name not in _SHOWN | _STEADY:
                yield f"{cls.__name__}.{name}"


def _rules(cls: type, bases: tuple[type, ...]) -> Iterator[str]:
    """Yield the names of methods that `cls` overrides, and of its properties, which can stand for an attribute."""
    for name, value in vars(cls).items():
        if name.startswith("__") or not (callable(value) or isinstance(value, _DESCRIPTORS)):
            continue
        is_own_property = isinstance(value, property) and not cls.__module__.startswith("simqueue.")
        if is_own_property or any(name in vars(base) for base in bases):
            yield name


def _set_on_object(policy: Policy) -> list[str]:
    """Return the names of methods that were replaced on the object itself."""
    own = getattr(policy, "__dict__", {})
    return [name for name, value in own.items() if callable(value) and callable(getattr(type(policy), name, None))]
