"""What a command loads, and that commands and their actions fit together."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from inspect import signature
from typing import get_type_hints

import pytest

from simqueue.cli.commands import COMMANDS, Command
from simqueue.execution import Executor

from ..helpers.toy_file import WriteToy


@pytest.mark.parametrize("arguments", [["--help"], ["validate", "FILE"], ["run", "--help"], ["list", "policies"]])
def test_start_up_is_light(toy: WriteToy, arguments: list[str]) -> None:
    """Help, validation and lists load no heavy libraries, so that they are fast."""
    _does_without_heavy_libraries([str(toy()) if argument == "FILE" else argument for argument in arguments])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{process: poisson, rate_rps: 5}", "{process: gamma, rate_rps: 5, cv: 2}"),
        (
            "{process: poisson, rate_rps: 5}",
            "{process: mmpp, rate_rps: 5, peak_to_mean: 2, mean_burst_s: 5, calm_to_mean: 0.5}",
        ),
        (
            "{distribution: exponential, mean: 800, min: 50, max: 100}",
            "{distribution: lognormal, median: 800, sigma: 1}",
        ),
        ("{distribution: constant, value: 10}", "{distribution: lognormal, mean: 192, cv: 0.6, min: 8, max: 896}"),
        ("vllm: {scheduler: chunked,", 'vllm: {engine: vllm, version: "0.10.0",'),
        ("{kind: constant, seconds: 0.01}", "{kind: linear, overhead_s: 0.01, per_decode_s: 1.0e-4}"),
    ],
)
def test_validation_draws_no_requests(toy: WriteToy, old: str, new: str) -> None:
    """Validation loads no arrays if the settings alone show that there are enough requests."""
    _does_without_heavy_libraries(["validate", str(toy((old, new)))])


def test_only_the_action_of_the_command_is_loaded(toy: WriteToy) -> None:
    """A command loads its own action and no other one; help loads none."""
    code = (
        "import sys; from simqueue.cli import run_command; assert run_command(sys.argv[1:]) == 0;"
        "actions = ('run', 'scenario_files', 'packaged');"
        "print([name for name in actions if f'simqueue.cli.actions.{name}' in sys.modules], file=sys.stderr)"
    )
    given = {"validate": ["validate", str(toy())], "list": ["list", "gpus"], "help": ["run", "--help"]}
    for what, loaded in (("validate", ["scenario_files"]), ("list", ["packaged"]), ("help", [])):
        command = [sys.executable, "-c", code, *given[what]]
        done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
        assert done.stderr == f"{loaded}\n"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command.group} {command.name}".strip())
def test_actions_take_what_commands_parse(command: Command) -> None:
    """An action has the parameters of its command, with the same types; every command has help.

    `debug`, `import_` and `dask` are handled before the action, which gets an executor as its `workers`.
    """
    module, _, name = command.action.partition(":")
    action = getattr(import_module(f"simqueue.cli.actions.{module}"), name)
    before = ("debug", "import_", "dask")
    parsed = {key: kind for key, kind in get_type_hints(command.declared).items() if key not in before}
    if "workers" in parsed:
        parsed["workers"] = Executor
    assert get_type_hints(action) == parsed
    assert list(signature(action).parameters) == [key for key in parsed if key != "return"]
    assert command.declared.__doc__


def _does_without_heavy_libraries(given: list[str]) -> None:
    code = (
        "import sys; from simqueue.cli import run_command; assert run_command(sys.argv[1:]) == 0;"
        "heavy = ('numpy', 'scipy', 'pandas', 'seaborn', 'matplotlib', 'simpy', 'pyarrow');"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *given], check=True, capture_output=True, encoding="utf-8")
    assert done.stderr == "[]\n"
