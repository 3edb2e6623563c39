"""Fuzzing of everything that is read: random changes of scenarios, and of the files that they name.

    python -m tests.hostile --minutes 5 --seed 1

Run it from the root of the repository. Every input must be accepted, or refused as the corpus is. The first one that
is not is made small and printed; it becomes a case in `findings.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from simqueue.cli import run_command

from .answers import MOST_SECONDS, faults
from .mutations import Input, inputs

_ROUND = 200
"""Examples with one seed."""
_HANGS_S = 20
"""Seconds after which a command is interrupted: it hangs."""


class HangingError(Exception):
    """A command did not end."""


def main() -> int:
    """Fuzz until the time is over, or until something is found."""
    asked = _arguments()
    signal.signal(signal.SIGALRM, _interrupt)
    with contextlib.redirect_stdout(io.StringIO()):
        run_command(["validate", "module08"])  # what is loaded at first is no part of an example
    ends, rounds = time.monotonic() + 60 * asked.minutes, 0
    while time.monotonic() < ends:
        found = _round(asked.seed + rounds)
        if found:
            sys.stdout.write(f"{found}\n")
            return 1
        rounds += 1
    sys.stdout.write(f"{rounds * _ROUND:,} inputs, all accepted or refused as they should be\n")
    return 0


def _round(number: int) -> str:
    """Try examples with one seed; return what was found, and the smallest input that shows it."""
    last: list[str] = []

    @seed(number)
    @settings(
        max_examples=_ROUND,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def one(data: st.DataObject) -> None:
        chosen = data.draw(inputs())
        wrong = _played(chosen)
        if wrong:
            last[:] = [f"seed {number}: {wrong}\n{chosen}"]
            raise AssertionError(wrong)

    with contextlib.suppress(AssertionError), contextlib.redirect_stdout(io.StringIO()):
        one()
    return last[0] if last else ""


def _played(chosen: Input) -> str:
    """Validate a scenario in this process and return what is wrong with the answer; empty if nothing is."""
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        for name, content in chosen.files.items():
            Path(folder, name).write_bytes(content)
        started = time.process_time()
        signal.alarm(_HANGS_S)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run_command(["validate", str(Path(folder, "s.yaml"))])
        except HangingError:
            return "hangs"
        finally:
            signal.alarm(0)
        seconds = time.process_time() - started
    if code == 0:
        return "" if seconds < MOST_SECONDS else f"{seconds:.1f} s"
    said = {"code": code, "err": err.getvalue(), "seconds": seconds, "mib": 0}
    wrong = "; ".join(faults(said))
    return f"{wrong}: {said}" if wrong else ""


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise HangingError


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
