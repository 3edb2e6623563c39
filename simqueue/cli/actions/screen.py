"""Tables on stdout and progress bars on stderr, drawn with rich.

rich takes as long to load as a short run, so it is loaded when something is drawn.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from simqueue.printable import printable_lines

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

ProgressCallback = Callable[[str, int, int], None]
"""Called with a policy, the number of its requests that are done, and the number of all its requests."""

_PIPED_COLUMNS = 120


def console() -> Console:
    """Return a console on stdout. If stdout is not a terminal, the width is fixed, so that output is reproducible."""
    from rich.console import Console  # noqa: PLC0415 - see above
    from rich.segment import Segment  # noqa: PLC0415 - see above

    class PlainConsole(Console):
        """Writes text of users, such as names of classes, without control characters of its own."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else printable_lines(text), style, control)

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPED_COLUMNS
    return PlainConsole(file=sys.stdout, width=width, highlight=False)


def print_rows(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[str] = (), wrapped: Sequence[str] = ()
) -> None:
    """Print a table of rows of which nothing is cut; `simqueue.report.layout.by_row` explains the parameters."""
    from simqueue.report.layout import by_row  # noqa: PLC0415 - see above

    screen = console()
    screen.print(by_row(titles, rows, left=left, wrapped=wrapped, width=screen.width))


def print_by_name(names: Sequence[str], lines: Sequence[tuple[str, str, Sequence[str]]]) -> None:
    """Print a table of several names of which nothing is cut; each line has a label, a unit, and a text per name."""
    from simqueue.report.layout import Entry, Section, by_name  # noqa: PLC0415 - see above

    entries = tuple(Entry(label, unit, tuple(texts)) for label, unit, texts in lines)
    screen = console()
    screen.print(by_name(names, [Section("", entries)], screen.width))


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a list such as `a 1, b 2`, broken only between its items; the lines below are indented."""
    kept = "\N{NO-BREAK SPACE}"
    whole = ", ".join(item.replace(" ", kept) for item in text.split(", "))
    lines = textwrap.wrap(
        whole, max(width, 40), subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return [line.replace(kept, " ") for line in lines]


@contextmanager
def busy(text: str, *, quiet: bool) -> Iterator[None]:
    """Show that work goes on whose end cannot be told; nothing if `quiet` or if stderr is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich import console  # noqa: PLC0415 - see above

    with console.Console(stderr=True).status(text):
        yield


@contextmanager
def progress_bar(scenario: str, *, quiet: bool, timed: bool = False) -> Iterator[ProgressCallback | None]:
    """Provide a function that draws progress; None if `quiet` or if stderr is not a terminal.

    If `timed`, the bar also shows the rate and the time that is left.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich import console, progress  # noqa: PLC0415 - see above

    columns = [
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
    ]
    if timed:
        columns += [
            progress.TextColumn("{task.fields[rate]}"),
            progress.TextColumn("left"),
            progress.TimeRemainingColumn(),
        ]
    tasks = {}
    with progress.Progress(*columns, console=console.Console(stderr=True), transient=True) as bar:

        def show(policy: str, done: int, total: int) -> None:
            if policy not in tasks:
                tasks[policy] = bar.add_task(f"{scenario}: {policy}", total=total, rate="")
            elapsed_s = bar.tasks[tasks[policy]].elapsed
            rate = f"{done / elapsed_s:.3g}/s" if elapsed_s else ""
            bar.update(tasks[policy], completed=done, total=total, rate=rate)

        yield show
