"""Plays commands in one process and reports what each of them did; the memory of the process is limited.

Reads a list of argument lists from stdin as JSON, and writes one JSON object per command to the file that is its
argument. It is a script of its own: a command that hangs or takes all memory ends this process, and not the tests.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

MOST_BYTES = 4 * 2**30
"""Address space: far more than a command may use, since libraries reserve some; it only protects the machine."""
LONGEST_S = 30
"""Seconds after which a command is taken for hanging, and this process ends."""


def main() -> None:
    """Play all commands."""
    commands = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    from simqueue.cli import run_command

    for action in ("calibrate", "explain", "run"):
        import_module(f"simqueue.cli.actions.{action}")  # libraries are loaded once, which is no part of a case

    with Path(sys.argv[1]).open("w", encoding="ascii") as report:
        for arguments in commands:
            out, err = io.StringIO(), io.StringIO()
            signal.alarm(LONGEST_S)
            started = time.process_time()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run_command(arguments)
            seconds = time.process_time() - started
            signal.alarm(0)
            said = {
                "code": code,
                "seconds": seconds,
                "mib": most_mib(),
                "err": err.getvalue(),
                "out": out.getvalue()[:1000],
            }
            report.write(json.dumps(said) + "\n")
            report.flush()


def most_mib() -> float:
    """Return the most memory that this program has had, in MiB.

    Linux counts what the parent had before this program began as its own (ru_maxrss), but not in VmHWM.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
        return float(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
