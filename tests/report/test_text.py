"""The comparison on a terminal."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from simqueue.report.text import comparison_rows, comparison_table, notes
from simqueue.results.result import Result
from simqueue.results.steadiness import OfferedLoad


def rendered(result: Result, width: int = 100) -> list[str]:
    """Return the lines that a terminal of this width shows."""
    screen = StringIO()
    Console(file=screen, width=width, color_system=None).print(comparison_table(result))
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
    for label in ("TTFT mean (ms)", "TTFT p99", "TPOT p95", "E2EL p95", "goodput (req/s)"):
        assert cells(lines, label) == [["-"]]
    assert cells(lines, "completed") == [["0"]]
    assert cells(lines, "rejected") == [["1"]]


@pytest.mark.parametrize("n", [0, 1, 3, 5, 6, 12])
def test_any_number_of_policies_fits_100_columns(result_of: Any, n: int) -> None:
    """Policies with long names that do not fit side by side go below; no line is wider, and no number is cut."""
    policies = {f"{i}-a-policy-of-a-rather-long-name": [123456.789 * (i + 1)] for i in range(n)}
    lines = rendered(result_of(policies))
    assert max(map(len, lines), default=0) <= 100
    assert [word for line in lines for word in line.split() if word in policies] == list(policies)
    shown = [cell for block in cells(lines, "TTFT p99") for cell in block]
    assert shown == [f"{123456.789 * (i + 1):,.0f}" for i in range(n)]


def test_names_stay_whole_on_a_narrow_terminal(result_of: Any) -> None:
    """Where 80 columns hold two policies of three, the third stands below; no name is broken."""
    policies = {f"vllm-0.33.0-with-flag-{i}": [1.0] for i in range(3)}
    screen = StringIO()
    Console(file=screen, width=80, color_system=None).print(comparison_table(result_of(policies), 80))
    lines = screen.getvalue().splitlines()
    assert [line.split() for line in lines if "vllm" in line] == [list(policies)[:2], list(policies)[2:]]


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
    policies, rows = comparison_rows(result)
    assert policies == ["p", "q"]
    assert dict(rows)["chat: TTFT mean (ms)"] == ["200.0", "-"]
    assert dict(rows)["[batch]: completed"] == ["1", "-"]


def test_too_few_values_are_one_line_a_run(result_of: Any) -> None:
    """One line names the policies, the percentiles and how many values they rest on, with what they take."""
    few, many = [1.0] * 10, [1.0] * 100
    (line,) = notes(result_of({"few": few, "many": many, "one": [1.0]}))
    assert line == (
        "n too small (p50 needs 2 values, p95 20, p99 100): few p95, p99 (n = 10); one p50, p95, p99 (n = 1)"
    )
    assert notes(result_of({"many": many})) == []


def test_three_policies_fit_a_pipe_of_80_columns(result_of: Any) -> None:
    """The usual comparison of three policies also fits where the width falls back to 80."""
    policies = {"static": [12345.0], "continuous": [234.0], "chunked": [12.0]}
    assert cells(rendered(result_of(policies), 80), "TTFT p50") == [["12,345", "234.0", "12.00"]]


def test_replications_are_one_column_with_half_widths(result_of: Any) -> None:
    """Replications of 100 and 300 ms show their mean and the t-interval of two values: 12.706 times 100."""
    one, other = result_of({"p": [100.0]}), result_of({"p": [300.0]})
    two = Result({}, "0.1.0", 7, [one.runs[0], type(one.runs[0])("p", 1, other.runs[0].recording)])
    assert cells(rendered(two), "TTFT mean (ms)") == [["200.0", "±1,271"]]


def test_markup_in_names_is_shown_literally(result_of: Any) -> None:
    """A name in square brackets is no command to the terminal."""
    assert any("[red]" in line for line in rendered(result_of({"[red]": [1.0]})))
