"""All commands as their users see them: arguments, options and help. Importing this package declares them."""

from simqueue.cli.command import COMMANDS, GROUPS, Command
from simqueue.cli.commands import lists, scenarios, sensitivities, serving, steps, sweeps, tuning

__all__ = [
    "COMMANDS",
    "GROUPS",
    "Command",
    "lists",
    "scenarios",
    "sensitivities",
    "serving",
    "steps",
    "sweeps",
    "tuning",
]
