"""A progress bar on stderr, for people who wait in front of a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ProgressCallback = Callable[[str, int, int], None]
"""Told the policy, how many of its requests are done, and how many there are."""


@contextmanager
def progress_bar(scenario: str, *, quiet: bool) -> Iterator[ProgressCallback | None]:
    """Give a function that draws progress, or None where nobody looks."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    tasks = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:

        def show(policy: str, done: int, total: int) -> None:
            if policy not in tasks:
                tasks[policy] = bar.add_task(f"{scenario}: {policy}", total=total)
            bar.update(tasks[policy], completed=done)

        yield show
