"""Files that are opened with a limit."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from simqueue.datafiles.regular import open_regular


def test_a_file_that_is_given_up_half_read_is_closed(tmp_path: Path) -> None:
    """A reader that ended in an error can be part of a cycle; the collector closes its file, without a warning."""
    (tmp_path / "rows.csv").write_text("1\n2\n")
    file = open_regular(tmp_path / "rows.csv", 1000)
    file.read(1)
    descriptor, cycle = file.fileno(), [file, file.raw]
    cycle.append(cycle)  # type: ignore[arg-type]
    del file, cycle
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
