"""The comparison on a terminal."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from simqueue.report.comparison import cell, comparison
from simqueue.report.lines import Line
from simqueue.report.text import comparison_table, notes
from simqueue.results.result import Result
from simqueue.results.steadiness import OfferedLoad


def rendered(result: Result, width: int = 100) -> list[str]:
    """Return the lines that a terminal of this width shows."""
    screen = StringIO()
    Console(file=screen, width=width, color_system=None).print(comparison_table(result, width))
    return screen.getvalue().splitlines()


def cells(lines: list[str], label: str) -> list[list[str]]:
    """Return the cells of a label, one list per block of policies."""
    return [line.strip()[len(label) :].split() for line in lines if line.strip().startswith(label + "  ")]


def test_policies_stand_side_by_side_with_their_numbers(result_of: Any) -> None:
    """Each policy has a column, in order, with its values in the units of the label."""
    lines = rendered(result_of({"static": [2000.0, 4000.0], "chunked": [100.0]}, slo={"ttft_ms": 500}))
    assert next(line.split() for line in lines if "static" in line) == ["static", "chunked"]
    assert cells(lines, "completed") == [["2", "1"]]
    assert cells(lines, "TTFT mean (ms)") == [["3,000", "100.0"]]
    assert cells(lines, "E2EL p50 (ms)") == [["6,000", "200.0"]]
    assert cells(lines, "throughput (req/s)") == [["0.250", "5.00"]]
    assert cells(lines, "goodput (req/s)") == [["0", "5.00"]]
    assert cells(lines, "KV peak") == [["10.0%", "10.0%"]]


def test_undefined_is_a_dash(result_of: Any) -> None:
    """Latencies without finished requests and goodput without an SLO show a dash, counts their zeros."""
    lines = rendered(result_of({"p": [5.0]}, status="rejected"))
    for label in ("TTFT mean (ms)", "TTFT p99 (ms)", "TPOT p95 (ms)", "E2EL p95 (ms)"):
        assert cells(lines, label) == [["-"]]
    assert cells(lines, "completed") == [["0"]]
    assert cells(lines, "rejected") == [["1"]]


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("n", [0, 1, 3, 5, 6, 12])
def test_any_number_of_policies_fits_the_terminal(result_of: Any, n: int, width: int) -> None:
    """Policies that do not fit side by side become rows: no line is too wide, and no name or number is cut."""
    result = result_of({f"{i}-a-policy-of-a-long-name": [123456.789 * (i + 1)] for i in range(n)})
    lines = rendered(result, width)
    assert max(map(len, lines), default=0) <= width
    found = comparison(result)
    for index, name in enumerate(found.policies):
        assert any(name in line for line in lines)
        for shown in (cells.texts[index] for group in found.sections.values() for cells in group):
            assert any(shown in line.split() for line in lines)


def test_a_turned_table_has_a_row_for_each_policy_below_labels_with_units(result_of: Any) -> None:
    """Seven policies at 80 columns are rows; each label has its unit below it."""
    lines = rendered(result_of({f"budget-{i}": [100.0 * i] for i in range(1, 8)}), 80)
    head = next(index for index, line in enumerate(lines) if "TTFT mean" in line)
    assert lines[head + 1].split()[-1].startswith("(")
    rows = [line.split() for line in lines[head + 3 : head + 10]]
    assert [row[0] for row in rows] == [f"budget-{i}" for i in range(1, 8)]
    end = lines[head].index("TTFT mean") + len("TTFT mean")
    assert [line[:end].split()[-1] for line in lines[head + 3 : head + 10]] == [f"{100 * i:.1f}" for i in range(1, 8)]


def test_a_name_longer_than_the_terminal_is_folded(result_of: Any) -> None:
    """All letters of a name of 150 characters are there, and no line is wider than the terminal."""
    name = "".join(chr(ord("a") + i % 26) for i in range(150))
    lines = rendered(result_of({name: [5.0], "q": [6.0]}), 60)
    assert max(map(len, lines)) <= 60
    pieces = [word for line in lines for word in line.split()[:1] if len(word) > 10 and word in name]
    assert name in "".join(pieces)


@pytest.mark.parametrize("status", ["finished", "rejected", "timed_out", "unfinished"])
def test_lines_that_say_nothing_are_left_out_and_named(result_of: Any, status: str) -> None:
    """Counts that are 0 for all policies are in a note instead of the table; all others are in the table."""
    result = result_of({"p": [5.0], "q": [6.0]}, status=status)
    labels = {"rejected": "rejected", "timed_out": "timed out", "unfinished": "unfinished"}
    lines = rendered(result)
    (said,) = [line for line in notes(result) if line.startswith("0 for all policies: ")]
    for key, label in labels.items():
        assert bool(cells(lines, label)) == (key == status)
        assert (label in said) == (key != status)
    assert not cells(lines, "replications")
    assert not cells(lines, "measured")


def test_a_line_that_differs_for_one_policy_is_shown_for_all(result_of: Any) -> None:
    """If one of two policies preempted a request, both counts are shown."""
    result = result_of({"p": [5.0], "q": [6.0]})
    result.runs[1].recording.requests["preemptions"] = result.runs[1].recording.requests["preemptions"] + 3
    assert cells(rendered(result), "preemptions") == [["0", "3"]]


def test_the_best_policies_are_known(result_of: Any) -> None:
    """The lowest latency and the highest throughput are best; equal values are best together unless all are equal."""
    found = comparison(result_of({"a": [100.0], "b": [200.0], "c": [100.0]}))
    best = {c.line.column: set(c.best) for group in found.sections.values() for c in group}
    assert best["mean_ttft_ms"] == {0, 2}
    assert best["request_throughput"] == {0, 2}
    assert best["completed"] == best["kv_peak_share"] == set()
    same = comparison(result_of({"a": [100.0], "b": [100.0]}))
    assert not any(c.best for group in same.sections.values() for c in group)


def test_intervals_that_overlap_have_no_single_best(result_of: Any) -> None:
    """Means of 200 and 210 ms with half-widths of 1,271 ms cannot be told apart."""
    made = [result_of({"p": [low], "q": [low + 10]}).runs for low in (100.0, 300.0)]
    runs = [type(run)(run.policy, i, run.recording) for i, pair in enumerate(made) for run in pair]
    found = comparison(Result({}, "0.1.0", 7, sorted(runs, key=lambda run: run.policy)))
    assert not any(c.best for c in found.sections["Time to first token"])


def test_a_limit_is_told_only_with_a_load(result_of: Any) -> None:
    """The limit of the capacity is shown together with a load, and neither if all requests are rejected."""
    for load, limit in ((0.5, "kv"), (None, "-")):
        result = result_of({"p": [5.0]}, offered={"p": OfferedLoad(load, "kv")})
        assert cells(rendered(result), "limited by") == [[limit]]
    rejected = result_of({"p": [5.0]}, status="rejected", offered={"p": OfferedLoad(20.0, "kv")})
    assert [cells(rendered(rejected), label) for label in ("load", "limited by", "overloaded")] == [[["-"]]] * 3


def test_a_load_does_not_need_finished_requests(result_of: Any) -> None:
    """If every client gave up, the table shows the load, which is known before the run, and the share that gave up."""
    lines = rendered(result_of({"p": [5.0, 6.0]}, status="timed_out", offered={"p": OfferedLoad(20.0, "slots")}))
    assert cells(lines, "load") == [["20.00"]]
    assert cells(lines, "limited by") == [["slots"]]
    assert cells(lines, "overloaded") == [["YES"]]
    assert cells(lines, "timed out") == [["2", "(100.0%)"]]


def test_classes_stand_below_all_requests(result_of: Any) -> None:
    """Each class has its own lines: of TTFTs 100, 300 and 2,000 ms the chat's mean is 200 and the batch's 2,000."""
    result = result_of({"p": [100.0, 300.0, 2000.0], "q": [1.0]})
    result.runs[0].recording.requests["request_class"][:] = ["chat", "chat", "[batch]"]
    lines = rendered(result)
    assert cells(lines, "completed") == [["3", "1"], ["2", "-"], ["1", "-"]]
    assert cells(lines, "TTFT mean (ms)") == [["800.0", "1.00"], ["200.0", "-"], ["2,000", "-"]]
    assert [line.strip() for line in lines if line.strip() in ("chat", "[batch]")] == ["chat", "[batch]"]
    classes = {name: {c.line.titled: c.texts for c in group} for name, group in comparison(result).classes.items()}
    assert classes["chat"]["TTFT mean (ms)"] == ("200.0", "-")
    assert classes["[batch]"]["completed"] == ("1", "-")


def test_too_few_values_are_one_line_a_run(result_of: Any) -> None:
    """One line names the policies, the percentiles and how many values they rest on, with what they take."""
    few, many = [1.0] * 10, [1.0] * 100
    (line,) = [n for n in notes(result_of({"few": few, "many": many, "one": [1.0]})) if n.startswith("n too")]
    assert line == (
        "n too small (p50 needs 2 values, p95 20, p99 100): 'few': p95, p99 (n = 10); 'one': p50, p95, p99 (n = 1)"
    )
    assert not [n for n in notes(result_of({"many": many})) if n.startswith("n too")]


def test_three_policies_fit_a_pipe_of_80_columns(result_of: Any) -> None:
    """The usual comparison of three policies also fits where the width falls back to 80."""
    policies = {"static": [12345.0], "continuous": [234.0], "chunked": [12.0]}
    assert cells(rendered(result_of(policies), 80), "TTFT p50 (ms)") == [["12,345", "234.0", "12.00"]]


def test_a_lopsided_interval_shows_its_ends() -> None:
    """An interval of which one side is much longer is not a plus or minus; one that is nearly even is."""
    line = Line("TTFT mean", "mean_ttft_ms")
    row = {"mean_ttft_ms": 100.0, "ci_low_mean_ttft_ms": 90.0, "rejected": 0, "n_requests": 9}
    assert cell({**row, "ci_high_mean_ttft_ms": 130.0}, line) == "100.0 [90.00, 130.0]"
    assert cell({**row, "ci_high_mean_ttft_ms": 111.0}, line) == "100.0 ±10.50"


def test_replications_are_one_column_with_half_widths(result_of: Any) -> None:
    """Replications of 100 and 102 ms show their mean and the t-interval of two values: 12.706 times 1."""
    one, other = result_of({"p": [100.0]}), result_of({"p": [102.0]})
    two = Result({}, "0.1.0", 7, [one.runs[0], type(one.runs[0])("p", 1, other.runs[0].recording)])
    assert cells(rendered(two), "TTFT mean (ms)") == [["101.0", "±12.71"]]


def test_markup_in_names_is_shown_literally(result_of: Any) -> None:
    """A name in square brackets is no command to the terminal."""
    assert any("[red]" in line for line in rendered(result_of({"[red]": [1.0]})))
