"""Hostile values from Python: answered with an InputError, and numbers of numpy are numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.results.stored import read_result
from simqueue.scenario import from_mapping

from .case import GOOD, Case
from .files import CONTENTS


def _with(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}


_IN_ITSELF: dict[str, Any] = {}
_IN_ITSELF["a"] = _IN_ITSELF


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sq.run({**GOOD, 5: 3}), "the key 5 must be text"),
        (lambda: sq.run({**GOOD, ("a",): 3}), "must be text"),
        (lambda: sq.run(_with(**{"\ud800": 3})), "must be text"),
        (lambda: sq.run(_with(kv_cache=_IN_ITSELF)), "nested too deeply"),
        (lambda: sq.run(_with(policies={f"p{i}": {"scheduler": "chunked"} for i in range(20_000)})), "up to 1,000"),
        (lambda: sq.run(_with(**{f"k{i}": 1 for i in range(2_000)})), "and 1,980 more problems"),
        (lambda: sq.run(_with(seed=10**5000)), "a whole number of some 5,000 digits"),
        (lambda: sq.run(_with(policies=iter("ab"))), "policies"),
        (lambda: sq.run(GOOD, seed="x"), "must be a whole number"),
        (lambda: sq.run(GOOD, overrides="seed=3"), "must be a list of texts"),
        (lambda: sq.run(GOOD, overrides=5), "must be a list of texts"),
        (lambda: sq.run(GOOD, overrides=[5]), "must be a text"),
        (lambda: sq.run(GOOD, workers="x"), "workers = 'x': must be a whole number"),
        (lambda: sq.run(GOOD, workers=1.5), r"workers = 1\.5: must be a whole number"),
        (lambda: sq.run(GOOD, workers=True), "workers = true: must be a whole number"),
        (lambda: sq.run(GOOD, stream_to=5), "stream_to = 5: must be the path"),
        (lambda: sq.run(5), "5 is no scenario"),
        (lambda: sq.load_scenario("modul08"), "did you mean 'module08'"),
    ],
)
def test_what_python_code_gets_wrong_is_an_input_error(call: Callable[[], object], said: str) -> None:
    """It is bad input, so that a program can tell it from a fault of the package; nothing spins."""
    with pytest.raises(sq.InputError, match=said):
        call()


@pytest.mark.parametrize("name", ["summary.json", "requests.parquet", "steps.parquet", "simqueue-result.json"])
@pytest.mark.parametrize(
    "what", ["a FIFO", "a folder", "/dev/zero", "64 GB of nothing", "100,000 objects", "all bytes"]
)
def test_a_saved_result_with_another_file_is_refused(name: str, what: str, tmp_path: Path) -> None:
    """Every file of a folder of results is looked at before it is read."""
    files = {"simqueue-result.json": b"{}", "summary.json": b"{}", name: CONTENTS[what]}
    Case("saved", (), files).written(tmp_path / "r")
    with pytest.raises(sq.InputError):
        read_result(tmp_path / "r")


def test_numbers_of_numpy_are_numbers() -> None:
    """A value, a seed, a list and a number of processes can be numpy's, and mean the same."""
    lengths = {"distribution": "empirical", "values": np.arange(1, 5)}
    workload = {**GOOD["workload"], "num_requests": np.int64(3), "prompt_tokens": lengths}
    made = from_mapping(_with(workload=workload, horizon_s=np.float32(0.5), fast=np.bool_(True)), seed=np.int64(7))
    assert (made.seed, made.horizon_s, made.fast) == (7, 0.5, True)
    assert made.workload is not None
    assert made.workload.num_requests == 3
    assert made.resolve().with_(seed=np.int16(8)).seed == 8


def test_a_packaged_scenario_has_a_name_in_python_too() -> None:
    """`load_scenario` takes the same names as `run`."""
    assert sq.load_scenario("module08").name == "module08"


def test_a_stream_can_be_a_text(tmp_path: Path) -> None:
    """The folder of a stream is a path or its text."""
    sq.run(GOOD, stream_to=str(tmp_path / "stream"))
    assert list((tmp_path / "stream").rglob("*.parquet"))
