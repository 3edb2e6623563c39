"""The corpus of hostile inputs: every one is bad input, so that each must be refused in one line.

They are made by code, since a rule finds more than a list: whole scenarios, bad values for each kind of key, bad
contents for each kind of file that a scenario or a command can name, and command lines.
"""

from __future__ import annotations

from .case import Case
from .commands import command_lines
from .files import files
from .findings import findings
from .scenarios import scenarios, values


def corpus() -> list[Case]:
    """Return all cases; their names differ."""
    return [*scenarios(), *values(), *files(), *command_lines(), *findings()]
