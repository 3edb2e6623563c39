"""Steps outside the range of a preset, in rows of many steps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simqueue.steptime.preset import Card, Preset, Valid, load_preset
from simqueue.steptime.validity import step_notes

from ..helpers.profiles import examples


def preset(low: float, high: float, of: str = "context_tokens") -> Preset:
    """Return a preset with a range of one quantity."""
    card = Card(description="x", valid=Valid.model_validate({of: [low, high]}), facts=[{"source": "by hand"}])
    return Preset("p", card, load_preset("vllm-h100").coefficients, ideal=False)


@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 60), st.integers(1, 40)), min_size=1, max_size=8),
    low=st.integers(1, 60),
    width=st.integers(0, 40),
)
@examples(60, 200)
def test_rows_of_many_steps_are_judged_step_by_step(rows: list[tuple[int, int, int]], low: int, width: int) -> None:
    """The share of the steps and the values outside are those of the single steps, whose contexts grow by one."""
    high = low + width
    columns = {
        "decode_seqs": np.array([n for n, _, _ in rows]),
        "context_tokens": np.array([n * context for n, context, _ in rows]),
        "prefill_tokens": np.zeros(len(rows), dtype=np.int64),
        "repeat": np.array([repeat for _, _, repeat in rows]),
    }
    contexts = [context + i if n else None for n, context, repeat in rows for i in range(repeat)]
    outside = [value for value in contexts if value is not None and not low <= value <= high]
    notes = list(step_notes(preset(low, high), columns))
    if not outside:
        assert notes == []
        return
    (note,) = notes
    share = len(outside) / len(contexts)
    percent = f"{100 * share:.0f} %" if share >= 0.01 else "under 1 %"
    assert f"; {percent} of the steps are outside, with {min(outside)} to {max(outside)}" in note.text
    assert note.regime == ("other batches" if share >= 0.05 else "in range")


def test_few_steps_outside_do_not_change_the_regime() -> None:
    """One step of a thousand is told, and the run is still in the range."""
    repeat = np.array([999, 1])
    columns = {"decode_seqs": np.array([1, 1]), "prefill_tokens": np.array([0, 0]), "repeat": repeat}
    (note,) = step_notes(preset(1, 2000), columns | {"context_tokens": np.array([1, 5000])})
    assert (note.regime, "under 1 %" in note.text) == ("in range", True)


def test_rows_of_equal_steps_are_told_by_their_value() -> None:
    """A row of many steps with the same number of decodes has this number, however many steps there are."""
    columns = {name: np.array([0, 0]) for name in ("context_tokens", "prefill_tokens")}
    steps = columns | {"decode_seqs": np.array([12, 1]), "repeat": np.array([500, 300])}
    notes = [note.text for note in step_notes(preset(0, 9, of="decode_seqs"), steps)]
    assert notes == ["was fitted for 0 to 9 decodes per step; 62 % of the steps are outside, with 12 to 12"]
