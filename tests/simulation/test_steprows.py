"""The steps table does not know how steps were folded."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from simqueue.request import Job, Request
from simqueue.schedulers.base import Plan
from simqueue.simulation.steprows import PLANS_AT_ONCE, StepRows
from simqueue.steptime.base import Batch

VICTIM = Job(Request("a", 0.0, 1, 1), 0)


def decode_plan(seqs: int, context: int, running: int = 3, waiting: int = 0) -> Plan:
    """Return a plan in which `seqs` requests decode."""
    batch = Batch(seqs, seqs, context, sampled_rows=seqs)
    return Plan(batch=batch, repeat=99, ticking=seqs, running=running, waiting=waiting, work=batch, blocks_used=0)


def row(*columns: float) -> dict[str, float]:
    """Name the columns of a row."""
    names = "start_s duration_s repeat last_step_s decode_seqs context_tokens prefill_tokens prefill_seqs "
    return dict(zip((names + "blocks_used running waiting preempted").split(), columns, strict=True))


def table(rows: StepRows) -> list[dict[str, float]]:
    """Return the finished rows."""
    arrays = rows.arrays()
    values = zip(*(column.tolist() for column in arrays.values()), strict=True)
    return [dict(zip(arrays, one, strict=True)) for one in values]


def test_equal_decode_steps_are_one_row() -> None:
    """Three steps of two decodes: one row with the first step's context and blocks, the whole time, the last step."""
    rows = StepRows()
    rows.add(decode_plan(2, 10), 0, 1.0, [1.5, 2.5], 0, 7)
    rows.add(decode_plan(2, 14), 0, 2.5, [2.75], 0, 8)
    assert table(rows) == [row(1.0, 1.75, 3, 0.25, 2, 10, 0, 0, 7, 3, 0, 0)]


def test_what_differs_starts_a_row() -> None:
    """Another batch, queue, context or a pause ends a row; steps with prompts or preemptions are rows of their own."""
    prefill = Batch(prefill=((0, 5),), sampled_rows=1)
    cases = [
        (decode_plan(2, 10), 0.0),
        (decode_plan(3, 12), 1.0),  # one decode more
        (decode_plan(3, 15, running=4), 2.0),  # one more runs
        (decode_plan(3, 18, running=4, waiting=1), 3.0),  # one more waits
        (decode_plan(3, 99, running=4, waiting=1), 4.0),  # the context jumps
        (decode_plan(3, 102, running=4, waiting=1), 6.0),  # a pause
        (replace(decode_plan(3, 105, running=4, waiting=1), preempted=[VICTIM]), 7.0),
        (decode_plan(3, 108, running=4, waiting=1), 8.0),  # after a preemption
        (replace(decode_plan(0, 0, running=4), batch=prefill, work=prefill), 9.0),
        (replace(decode_plan(0, 0, running=4), batch=prefill, work=prefill), 10.0),
    ]
    rows = StepRows()
    for plan, start_s in cases:
        rows.add(plan, 0, start_s, [start_s + 1.0], plan.waiting, 1)
    found = table(rows)
    assert [one["start_s"] for one in found] == [start_s for _, start_s in cases]
    assert [one["repeat"] for one in found] == [1] * len(cases)
    assert [one["prefill_tokens"] for one in found][-3:] == [0, 5, 5]
    assert [one["preempted"] for one in found][-5:] == [0, 1, 0, 0, 0]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 9), st.booleans(), st.integers(0, 1)), min_size=1, max_size=8),
    st.data(),
)
def test_rows_do_not_depend_on_folds(runs: list[tuple[int, int, bool, int]], data: st.DataObject) -> None:
    """However a run of steps is cut, as parts of one plan or as plans of their own, the table is the same."""
    whole, cut = StepRows(), StepRows()
    now_s, context = 0.0, 10
    for seqs, steps, rough, waiting in runs:
        ends_s = [now_s + (0.1 if rough else 0.25) * (i + 1) for i in range(steps)]
        whole.add(decode_plan(seqs, context), 0, now_s, ends_s, waiting, 5)
        past, planned = 0, 0
        while past < steps:
            end = data.draw(st.integers(past + 1, steps))
            if data.draw(st.booleans()):
                planned = past  # from here on with a plan of its own
            plan = decode_plan(seqs, context + planned * seqs)
            start_s = ends_s[past - 1] if past else now_s
            cut.add(plan, past - planned, start_s, ends_s[past:end], waiting, 5)
            past = end
        context += steps * seqs
        now_s = ends_s[-1]
    for name, column in whole.arrays().items():
        assert column.tobytes() == cut.arrays()[name].tobytes(), name


def test_padding_is_not_work() -> None:
    """Rows have the plan's work, not its padded batch."""
    plan = replace(decode_plan(1, 6), batch=Batch(4, 4, 80, sampled_rows=4))
    rows = StepRows()
    rows.add(plan, 0, 0.0, [1.0, 2.0], 0, 9)
    assert table(rows) == [row(0.0, 2.0, 2, 1.0, 1, 6, 0, 0, 9, 3, 0, 0)]


def test_rows_are_made_during_the_run() -> None:
    """After 1024 plans that differ, all rows but the last are in the table; the last one can still go on."""
    rows = StepRows()
    for step in range(PLANS_AT_ONCE):
        rows.add(decode_plan(2, 100, waiting=step % 2), 0, float(step), [step + 1.0], step % 2, 1)
    assert len(rows.columns) == PLANS_AT_ONCE - 1
    assert len(rows.arrays()["start_s"]) == PLANS_AT_ONCE


def test_a_row_goes_on_over_the_parts_in_which_rows_are_made() -> None:
    """2000 equal decode steps, each a plan of its own, are one row."""
    rows = StepRows()
    for step in range(2000):
        rows.add(decode_plan(2, 100 + 2 * step), 0, float(step), [step + 1.0], 0, 1)
    assert table(rows) == [row(0.0, 2000.0, 2000, 1.0, 2, 100, 0, 0, 1, 3, 0, 0)]
