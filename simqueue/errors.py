"""What can go wrong, told apart by whose turn it is: the user's (bad input) or the run's."""

from __future__ import annotations


class SimqueueError(Exception):
    """Base of every error this package raises on purpose; its text is one line for people."""


class InputError(SimqueueError):
    """Something the user wrote is wrong: a scenario, a trace, a flag. The command line exits with 2."""


class RunError(SimqueueError):
    """The run itself failed (livelock, a broken invariant). The command line exits with 1."""
