"""Streamed runs that are stopped, killed or run out of disk: what is there afterwards."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from simqueue.errors import InputError, RunError
from simqueue.experiment import run
from simqueue.results.stored import read_result
from simqueue.simulation import columns

ROWS = 200
SCENARIO: dict[str, Any] = {
    "name": "long",
    "step_time": {"kind": "constant", "seconds": 0.01},
    "kv_cache": {"blocks": 100},
    "workload": {
        "num_requests": 1200,
        "arrivals": {"process": "poisson", "rate_rps": 60},
        "prompt_tokens": {"distribution": "uniform", "low": 1, "high": 30},
        "output_tokens": {"distribution": "geometric", "mean": 4},
    },
    "policies": {"one": {"scheduler": "chunked"}, "two": {"scheduler": "static"}},
}
TABLES = ("requests", "steps", "gaps")


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "STREAMED_ROWS", ROWS)


def after(requests: int, what: Callable[[], None]) -> Callable[[str, int, int], None]:
    """Return a progress function that does something when that many requests of the second policy have ended."""

    def progress(policy: str, ended: int, _: int) -> None:
        if policy == "two" and ended >= requests:
            what()

    return progress


def stop() -> None:
    """Do what Ctrl-C does."""
    raise KeyboardInterrupt


def tables(folder: Path) -> Mapping[str, bytes]:
    """Return all files below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_partial(partial: Path, whole: Path) -> None:
    """Check that a partial folder says so, and that its tables are the beginning of those of the whole run."""
    assert "not complete" in json.loads((partial / "simqueue-partial.json").read_text())["what"]
    with pytest.raises(InputError, match="is not complete"):
        read_result(partial)
    for table in TABLES:
        assert (partial / "new" / "one" / f"{table}.parquet").read_bytes() == (
            whole / "one" / f"{table}.parquet"
        ).read_bytes()
        found = pd.read_parquet(partial / "new" / "two" / table)
        expected = pd.read_parquet(whole / "two" / f"{table}.parquet")
        assert 0 < len(found) < len(expected)
        assert len(found) % ROWS == 0
        pd.testing.assert_frame_equal(found, expected.head(len(found)))


def test_a_stopped_run_is_marked_and_the_earlier_stream_is_whole(tmp_path: Path) -> None:
    """After Ctrl-C the earlier stream is as it was, and what was written is beside it, to the last chunk."""
    run(SCENARIO, check=False, stream_to=tmp_path / "long")
    before = tables(tmp_path / "long")
    with pytest.raises(KeyboardInterrupt):
        run(SCENARIO, check=False, stream_to=tmp_path / "long", progress=after(1100, stop))
    assert tables(tmp_path / "long") == before
    check_partial(tmp_path / "long.partial", tmp_path / "long")
    run(SCENARIO | {"seed": 1}, check=False, stream_to=tmp_path / "long")
    assert [path.name for path in tmp_path.iterdir()] == ["long"]
    assert tables(tmp_path / "long").keys() == before.keys()
    assert tables(tmp_path / "long") != before


def test_a_killed_run_leaves_tables_that_can_be_read(tmp_path: Path) -> None:
    """After kill -9 every Parquet file can be read, and the folder says that they are not complete."""
    program = (
        "import json, os, signal, sys; import simqueue as sq; from simqueue.simulation import columns\n"
        f"columns.STREAMED_ROWS = {ROWS}\n"
        "def progress(policy, ended, total):\n"
        "    if policy == 'two' and ended >= 1100: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sq.run(json.loads(sys.argv[1]), check=False, stream_to=sys.argv[2], progress=progress)"
    )
    command = [sys.executable, "-c", program, json.dumps(SCENARIO), str(tmp_path / "long")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["long.partial"]
    run(SCENARIO, check=False, stream_to=tmp_path / "whole")
    check_partial(tmp_path / "long.partial", tmp_path / "whole")


def test_a_full_disk_ends_a_stream_in_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The chunks cannot become one file: they are kept, and so is the earlier stream, and nothing is printed."""
    run(SCENARIO | {"seed": 1}, check=False, stream_to=tmp_path / "long")
    before = tables(tmp_path / "long")
    largest = max(len(content) for content in before.values())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest // 2, limits[1]))
    try:
        with pytest.raises(RunError, match=r"\.parquet: cannot be written: File too large$"):
            run(SCENARIO, check=False, stream_to=tmp_path / "long")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert tables(tmp_path / "long") == before
    parts = sorted((tmp_path / "long.partial").rglob("part-*.parquet"))
    assert sum(len(pd.read_parquet(part)) for part in parts) > 0
    assert capfd.readouterr() == ("", "")


def test_a_folder_of_other_files_is_refused_before_the_run(tmp_path: Path) -> None:
    """A file of one's own in a stream, or in the way of one, is bad input before the first request."""
    run(SCENARIO, check=False, stream_to=tmp_path / "long")
    (tmp_path / "long" / "one" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("x")
    for path, words in (("long", r"one/notes\.txt is not part of"), ("file", "is a file"), ("file/x", "is a file")):
        with pytest.raises(InputError, match=words):
            run(SCENARIO, check=False, stream_to=str(tmp_path / path), progress=lambda *_: pytest.fail("has run"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "long"]
