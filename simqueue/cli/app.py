"""The typer application: which arguments run which command, and which exit code an error gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, cast

import typer

import simqueue
from simqueue.cli.commands import COMMANDS, GROUPS, Command
from simqueue.cli.failures import BAD_INPUT, DONE, print_error, report, with_traceback
from simqueue.errors import INTERRUPTED
from simqueue.printable import LONGEST_LINE, shortened

_HELP = {"help_option_names": ["-h", "--help"]}
_PLAIN: dict[str, Any] = {"rich_markup_mode": None, "context_settings": _HELP}
# typer exports only this subclass of the class of all usage errors
_UsageError = cast("type[Exception]", typer.BadParameter.__mro__[1])


def outcome(arguments: list[str]) -> int:
    """Run a command and return its exit code; errors go to stderr, one line each."""
    with_traceback.set("--debug" in arguments)
    try:
        return _invoke(arguments)
    except BrokenPipeError:
        raise
    except Exception as error:
        return report(error)


def _invoke(arguments: list[str]) -> int:
    try:
        app = application(arguments[0] if arguments else None)
        code = app(arguments, prog_name="simqueue", standalone_mode=False)
    except _UsageError as error:
        print_error(_usage(error))
        return BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:
        print_error("interrupted")
    return code if isinstance(code, int) else DONE


def application(first: str | None) -> typer.Typer:
    """Return the application for arguments that begin with `first`.

    If `first` names a command or a group, the others are left out, which saves the time to build their options.
    """
    app = typer.Typer(help=(simqueue.__doc__ or "").partition("\n")[0], pretty_exceptions_enable=False, **_PLAIN)
    app.callback(epilog="Start with: simqueue init first.yaml && simqueue run first.yaml")(_top)
    chosen = [command for command in COMMANDS if command.first_word == first] or COMMANDS
    groups = {command.group: typer.Typer(help=GROUPS[command.group], **_PLAIN) for command in chosen if command.group}
    for command in chosen:
        groups.get(command.group, app).command(command.name)(_run_when_called(command))
    for name, group in groups.items():
        app.add_typer(group, name=name)
    return app


def _run_when_called(command: Command) -> Callable[..., None]:
    """Return a function with the signature of `command` that imports and calls the action of the command.

    The action does not get `debug`, which `outcome` reads, and `import_`, which is done before. The executor that
    `workers` and `dask` stand for is its `workers`, and is open while the action runs.
    """

    @wraps(command.declared)
    def call(**values: Any) -> None:
        values.pop("debug", None)
        if files := values.pop("import_", None):
            import_module("simqueue.cli.imports").import_files(files)
        with _executor(values):
            module, _, name = command.action.partition(":")
            getattr(import_module(f"simqueue.cli.actions.{module}"), name)(**values)

    return call


@contextmanager
def _executor(values: dict[str, Any]) -> Iterator[None]:
    """Open the executor of a command that has one."""
    if "workers" not in values:
        yield
        return
    execution = import_module("simqueue.execution")  # most commands do without
    with execution.executor(values["workers"], values.pop("dask", None)) as where:
        values["workers"] = where
        yield


def _print_version(wanted: bool) -> None:
    if wanted:
        kind = "compiled" if simqueue.__compiled__ else "pure Python"
        typer.echo(f"simqueue {simqueue.__version__}, {kind}")
        raise typer.Exit


def _top(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version and whether the engine is compiled, and exit.",
        ),
    ] = False,
) -> None:
    pass


def _usage(error: Exception) -> str:
    """Return a usage error in one line that names the help of its command."""
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    message = shortened(message, LONGEST_LINE)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "simqueue"
    return f"{' '.join(message.split()).rstrip('.')} (see '{command} --help')"
