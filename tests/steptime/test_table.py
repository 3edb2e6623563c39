"""Measured tables: interpolation inside, refusal or a warning outside."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.errors import InputError
from simqueue.steptime import Batch, TableSettings
from simqueue.steptime.build import build
from simqueue.steptime.table import TableStepTime

HEADER = "decode_seqs,context_tokens,prefill_tokens,ms\n"


def plane(decodes: float, context: float, prefill: float) -> float:
    """Return a time that is linear in each axis, in ms."""
    return 2 + 0.1 * decodes + 0.001 * context + 0.02 * prefill


def write(folder: Path, rows: str) -> Path:
    """Write a table."""
    (folder / "steps.csv").write_text(HEADER + rows)
    return folder


def grid(decodes: list[int], contexts: list[int], prefills: list[int]) -> str:
    """Return the rows of a full grid on the plane; without decodes one context is enough."""
    rows = [(d, c, p) for d in decodes for c in (contexts if d else contexts[:1]) for p in prefills]
    return "".join(f"{d},{c},{p},{plane(d, c if d else contexts[0], p)}\n" for d, c, p in rows)


def table(folder: Path, outside: str = "refuse") -> TableStepTime:
    """Return the step time of the table in a folder."""
    made = build(TableSettings.model_validate({"path": "steps.csv", "outside": outside}), base_dir=folder)
    assert isinstance(made, TableStepTime)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a grid of 0 to 64 decodes, contexts 1 to 4096 and 0 to 512 prompt tokens."""
    return write(tmp_path_factory.mktemp("table"), grid([0, 1, 8, 64], [1, 512, 4096], [0, 128, 512]))


@given(st.integers(1, 64), st.integers(1, 4096), st.integers(0, 512))
def test_straight_lines_between_points(decodes: int, context: int, prefill: int) -> None:
    """Inside the grid a time that is linear in each axis comes back exactly."""
    batch = Batch(decodes, decodes, decodes * context, ((0, prefill),) if prefill else (), decodes)
    assert LINEAR.seconds(batch) == pytest.approx(plane(decodes, context, prefill) / 1e3, rel=1e-9)


def _linear() -> TableStepTime:
    axes = ((1.0, 8.0, 64.0), (1.0, 512.0, 4096.0), (0.0, 128.0, 512.0))
    at = {
        (i, j, k): plane(d, c, p) / 1e3
        for i, d in enumerate(axes[0])
        for j, c in enumerate(axes[1])
        for k, p in enumerate(axes[2])
    }
    return TableStepTime("plane", axes, at, rejects=True, least_s=min(at.values()))


LINEAR = _linear()


def test_points_are_hit_and_midpoints_are_means(folder: Path) -> None:
    """A measured step takes the measured time, and a step half-way between two takes their mean."""
    prices = table(folder)
    eight = prices.seconds(Batch(8, 8, 8 * 512, (), 8))
    sixty_four = prices.seconds(Batch(64, 64, 64 * 512, (), 64))
    assert eight == pytest.approx(plane(8, 512, 0) / 1e3, rel=1e-12)
    assert prices.seconds(Batch(36, 36, 36 * 512, (), 36)) == pytest.approx((eight + sixty_four) / 2, rel=1e-12)
    assert prices.seconds(Batch(prefill=((0, 320),), sampled_rows=1)) == pytest.approx(plane(0, 1, 320) / 1e3)


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (Batch(65, 65, 65, (), 65), "covers 0 to 64 decodes per step; a step has 65"),
        (Batch(1, 1, 5000, (), 1), "covers 1 to 4096 tokens of context per decode; a step has 5000"),
        (Batch(prefill=((0, 600),)), "covers 0 to 512 prompt tokens per step; a step has 600"),
    ],
)
def test_outside_is_rejected_with_the_range(folder: Path, batch: Batch, said: str) -> None:
    """A step outside the grid is an error that names the table, its range and the step's value."""
    with pytest.raises(InputError, match=f"^step_time: steps.csv {said}"):
        table(folder).seconds(batch)


def test_outside_may_be_extended_with_a_warning(folder: Path) -> None:
    """With outside: warn, times are extrapolated linearly, and a warning has the range and the values of the run."""
    prices = table(folder, "warn")
    assert prices.seconds(Batch(80, 80, 80 * 512, (), 80)) == pytest.approx(plane(80, 512, 0) / 1e3, rel=1e-12)
    names = ("decode_seqs", "context_tokens", "prefill_tokens", "repeat")
    steps = dict(zip(names, (np.array([64, 80]), np.array([64, 80]), np.array([0, 9]), np.array([1, 1])), strict=True))
    assert prices.warnings(steps) == [
        "step_time: steps.csv covers 0 to 64 decodes per step; this run has 64 to 80",
    ]
    assert prices.warnings({**steps, "decode_seqs": np.array([64, 0])}) == []


def test_steps_in_a_row_cost_what_each_costs(folder: Path) -> None:
    """The i-th of n consecutive steps takes, bit for bit, what that step takes alone."""
    prices, batch = table(folder), Batch(8, 8, 4000, (), 8)
    assert list(prices.durations(batch, 100)) == [prices.seconds(batch.later(i)) for i in range(100)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("1,1,0,2\n8,1,0,3\n1,512,0,4\n", "no row for decode_seqs 8, context_tokens 512, prefill_tokens 0"),
        ("1,1,0,2\n1,1,0,3\n", "steps.csv:3: this combination occurs twice"),
        ("1,1,0,0\n", "steps.csv:2: ms '0' is not a finite number above 0"),
        ("1,x,0,2\n", "steps.csv:2: context_tokens 'x' is not a number"),
        ("", "a header and no rows"),
    ],
)
def test_tables_that_are_no_grid_are_rejected(tmp_path: Path, rows: str, said: str) -> None:
    """A missing or repeated point, a time that is not positive, or text for a number is rejected with its place."""
    with pytest.raises(InputError, match=said):
        table(write(tmp_path, rows))


def test_files_that_are_no_table_are_rejected(tmp_path: Path) -> None:
    """A missing file and a missing column are named."""
    with pytest.raises(InputError, match=r"steps.csv: no such file"):
        table(tmp_path)
    (tmp_path / "steps.csv").write_text("decode_seqs,ms\n1,2\n")
    with pytest.raises(InputError, match="column 'context_tokens' is missing, columns found: 'decode_seqs', 'ms'"):
        table(tmp_path)
