"""What a command is, and the list of all commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the command line.

    Attributes
    ----------
    name : str
    group : str
        Group that the command belongs to, or empty.
    declared : callable
        A function without a body. Typer takes the options from its signature and the help from its docstring.
    action : str
        ``module:function`` in `simqueue.cli.actions`. The function takes the same parameters, except `debug`,
        `import_` and `dask`; its `workers` is an open executor. It is imported when the command is run, so that help
        is shown without loading the libraries that runs need.
    """

    name: str
    group: str
    declared: Callable[..., None]
    action: str

    @property
    def first_word(self) -> str:
        """The first argument of a command line that runs this command."""
        return self.group or self.name


COMMANDS: list[Command] = []
"""All commands, in the order in which help lists them."""

GROUPS = {"list": "List the names that a scenario can use."}
"""Name of each group of commands -> its help."""


def command(action: str, group: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare a function as the command of its name."""

    def declare(declared: Callable[..., None]) -> Callable[..., None]:
        COMMANDS.append(Command(declared.__name__, group, declared, action))
        return declared

    return declare
