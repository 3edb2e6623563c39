"""What several actions share: loading scenarios, and printing without tables."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from simqueue.errors import InputError
from simqueue.hardware import Gpu, Model, load_gpu, load_model
from simqueue.hardware.precision import known_format
from simqueue.outputs import Outputs, Place
from simqueue.printable import printable
from simqueue.scenario import Scenario, load


def load_scenario(
    argument: str, overrides: Iterable[str] | None, seed: int | None, replications: int | None = None
) -> Scenario:
    """Load a scenario file, or a packaged scenario by its name.

    Parameters
    ----------
    argument : str
        A path or a name.
    overrides : iterable of str, optional
        ``KEY=VALUE``, as given with ``--set``.
    seed, replications : int, optional
        Override the values of the scenario.
    """
    given = list(overrides or ())
    if replications is not None:
        given += ["precision=null", f"replications={replications}"]
    return load(argument, given, seed)


@contextmanager
def flag(name: str) -> Iterator[None]:
    """Report errors raised inside as errors of this flag, such as ``--preset``, and of no key."""
    try:
        yield
    except InputError as error:
        raise InputError.of(replace(problem, path=(), place=name) for problem in error.problems) from None


def load_hardware(model: str, gpu: str, weights: str | None) -> tuple[Model, Gpu]:
    """Return the model and the GPU that the flags ``--model``, ``--gpu`` and ``--weights`` describe.

    Raises
    ------
    InputError
        If one of them does not exist; the error names the flag.
    """
    with flag("--weights"):
        stored = known_format(weights)
    with flag("--model"):
        chosen = load_model(model, Path()).with_precision(weights=stored)
    with flag("--gpu"):
        return chosen, load_gpu(gpu, Path())


def baseline_place(outputs: Outputs, path: Path) -> Place:
    """Reserve the file of ``--write-baseline``."""
    if path.suffix != ".json":
        raise InputError(f"--write-baseline: {path} must end in .json")
    return outputs.file(path)


def print_json(content: Any) -> None:
    """Print one strict JSON object."""
    typer.echo(json.dumps(content, allow_nan=False))


def print_json_text(text: str) -> None:
    """Print JSON. Characters that stdout cannot encode are escaped as JSON has it."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:  # all such characters are inside strings
        text = "".join(letter if letter.isascii() else json.dumps(letter)[1:-1] for letter in text)
    typer.echo(text)


def print_warnings(lines: Iterable[str]) -> None:
    """Print one line per warning; on a terminal it is broken between words, and its further lines are indented."""
    for line in lines:
        text = f"warning: {line}"
        if sys.stdout.isatty():
            columns = shutil.get_terminal_size().columns
            parts = textwrap.wrap(text, columns, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        else:
            parts = [text]
        for part in parts:
            say(part)


def say(line: str) -> None:
    """Print a line that can have text of a user in it, such as a name."""
    typer.echo(printable(line))


def check_figure(figure: Path | None) -> None:
    """Raise `InputError` unless a figure is a file of a known kind, or none."""
    if figure is not None and figure.suffix not in (".png", ".svg"):
        raise InputError(f"--figure: {figure} must end in .png or .svg")
