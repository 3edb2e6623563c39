"""``--import``: Python files that register schedulers or routers, loaded before a command runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from simqueue.errors import InputError, SimqueueError


def import_files(files: Iterable[Path]) -> None:
    """Import Python files, as ``import NAME`` in their folder would.

    The folders are added to the end of `sys.path`, which worker processes inherit: they find the same classes.

    Raises
    ------
    InputError
        If a file does not exist, cannot be imported under its name, or raises an exception.
    """
    for file in files:
        _check(file)
        folder = str(file.resolve().parent)
        if folder not in sys.path:
            sys.path.append(folder)
        _check_first(file)
        _import(file)


def _check(file: Path) -> None:
    if not file.is_file():
        raise InputError(f"--import {file}: there is no such file")
    if file.suffix != ".py" or not file.stem.isidentifier():
        raise InputError(f"--import {file}: must be a Python file whose name can be imported, such as my_policy.py")


def _check_first(file: Path) -> None:
    """Check that the name of the file leads to the file, and not to another module."""
    spec = find_spec(file.stem)
    found = spec.origin if spec is not None else None
    if found is None or not Path(found).exists() or not Path(found).samefile(file):
        raise InputError(f"--import {file}: there is another module '{file.stem}' ({found}); rename the file")


def _import(file: Path) -> None:
    try:
        import_module(file.stem)
    except SimqueueError:
        raise
    except (Exception, SystemExit) as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"--import {file}{_line(error, file)}: {text}") from error


def _line(error: BaseException, file: Path) -> str:
    """Return the last line of the file that led to an exception, as ``:LINE``; empty if there is none."""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f":{error.lineno}"
    lines = []
    traceback = error.__traceback__
    while traceback is not None:
        if Path(traceback.tb_frame.f_code.co_filename).name == file.name:
            lines.append(traceback.tb_lineno)
        traceback = traceback.tb_next
    return f":{lines[-1]}" if lines else ""
