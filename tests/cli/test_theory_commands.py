"""theory, capacity, compare and verify on the command line."""

from __future__ import annotations

import json
import math
import re
from functools import partial
from pathlib import Path

import pytest

from simqueue.cli import run_command
from simqueue.cli.actions import capacity as capacity_command
from simqueue.cli.actions.common import print_warnings
from simqueue.experiment.carried import Carried, carried
from simqueue.theory.catalog import FORMULAS, explained

SCENARIO = """\
step_time: {kind: linear, overhead_s: 0.02, per_decode_s: 0.001, per_prefill_token_s: 0.00005}
kv_cache: {blocks: 100000}
workload:
  arrivals: {process: poisson, rate_rps: 7.0}
  prompt_tokens: {distribution: constant, value: 500}
  output_tokens: {distribution: geometric, mean: 20}
  num_requests: 120
policies:
  whole: {scheduler: continuous, max_num_seqs: 8}
  chunked: {scheduler: chunked, max_num_seqs: 8, max_num_batched_tokens: 256}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Return the path of a small scenario."""
    path = tmp_path / "two.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return str(path)


def test_theory_lists_describes_and_evaluates(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a name, formulas are listed; without values, parameters; with both, the result is printed."""
    assert run_command(["theory"]) == 0
    assert "erlang_b" in capsys.readouterr().out
    assert run_command(["theory", "mm1"]) == 0
    assert "service_rate" in capsys.readouterr().out
    assert run_command(["theory", "mm1", "arrival_rate=0.8", "service_rate=1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean_wait_s"] == pytest.approx(4)


def test_what_is_infinite_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    """With an infinite second moment the mean wait is infinite: a word in the text, null and its name in JSON."""
    heavy = ["theory", "mg1", "arrival_rate=0.5", "mean_service_s=1", "second_moment_s2=inf"]
    assert run_command(heavy) == 0
    shown = capsys.readouterr().out
    assert shown.count("infinite") == 4
    assert run_command([*heavy, "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert found["mean_wait_s"] is None
    assert found["infinite"] == ["mean_wait_s", "mean_sojourn_s", "mean_waiting", "mean_in_system"]
    assert found["utilisation"] == 0.5


@pytest.mark.parametrize("name", list(FORMULAS))
def test_every_formula_states_the_domain_of_its_parameters(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed without values says of each parameter what it is and where it must lie."""
    assert run_command(["theory", name]) == 0
    assert len(re.findall("(?:float|int)[^:]*: ", capsys.readouterr().out)) == len(explained(FORMULAS[name]))
    for key, text in explained(FORMULAS[name]).items():
        assert re.search(r"[<>]|[Aa]t least|[Ff]rom |[Aa]ny number", text), (key, text)


def test_results_have_names(capsys: pytest.CaptureFixture[str]) -> None:
    """The tail of M/D/1 with ρ = 0.5: θ is the root of 0.5 (exp(θ) - 1) = θ, and K = 0.5 / (θ - 0.5)."""
    assert run_command(["theory", "md1_decay", "arrival_rate=0.5", "service_s=1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    theta = found["decay_per_s"]
    assert theta > 0
    assert 0.5 * math.expm1(theta) == pytest.approx(theta)
    assert found == {"decay_per_s": theta, "factor": pytest.approx(0.5 / (theta - 0.5))}


@pytest.mark.parametrize("columns", [None, 60])
def test_warnings_are_broken_where_they_do_not_fit(
    columns: int | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe gets one line per warning, a terminal lines of its width."""
    monkeypatch.setenv("COLUMNS", str(columns or 60))
    monkeypatch.setattr("sys.stdout.isatty", lambda: columns is not None)
    print_warnings(["a policy: " + "word " * 40 + "end", "another one"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= (columns or 1000)
    assert len([line for line in lines if line.startswith("warning: ")]) == 2
    assert len(lines) == (2 if columns is None else 5)
    assert " ".join(" ".join(lines).split()).endswith("word end warning: another one")


@pytest.mark.parametrize("slots", [1, 8])
def test_verify_says_what_lowers_the_load(slots: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Above its capacity a policy has no steady state that theory could describe: one line, in terms of scenarios."""
    path = tmp_path / "much.yaml"
    head = "step_time: {kind: constant, seconds: 0.01}\nkv_cache: {blocks: 100000}\n"
    rest = SCENARIO.partition("workload:")[2].partition("policies:")[0].replace("rate_rps: 7.0", "rate_rps: 1000")
    path.write_text(
        f"{head}workload:{rest}policies:\n  p: {{scheduler: continuous, max_num_seqs: {slots}}}\n", encoding="utf-8"
    )
    assert run_command(["verify", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "p: " in error
    assert "a lower rate_rps, more slots, shorter requests or faster steps reduce the load" in error


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["mm2", "x=1"], "did you mean 'mm1' or 'mmc'"),
        (["mm1", "arrival_rate=fast", "service_rate=1"], "error: mm1: arrival_rate = 'fast': must be KEY=NUMBER"),
        (["mm1", "arrival_rate=2", "service_rate=1"], "error: mm1: utilisation 2: must be > 0 and < 1"),
        (["mmc", "servers=1e9", "arrival_rate=9e8", "service_rate=1"], "servers = 1,000,000,000: must be at most"),
        (["mm1k", "arrival_rate=1", "service_rate=1", "room=1e9"], "room = 1,000,000,000: must be at most 1,000,000"),
        (
            ["slotted_continuous", "arrival_rate=1", "slots=1e9", "mean_output_tokens=5", "step_s=1"],
            "slots = 1,000,000,000: must be at most 1,200",
        ),
        (["md1", "arrival_rate=nan", "service_s=1"], "arrival_rate = nan: must be a number > 0"),
    ],
)
def test_theory_explains_mistakes(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown formula, a value that is no number or too large, and an unstable queue give one line each."""
    assert run_command(["theory", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_capacity_as_json_and_figure(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Capacity, limit, load and estimates are printed as JSON, and a figure is written."""
    assert run_command(["capacity", file, "--json", "--figure", str(tmp_path / "c.png")]) == 0
    found = json.loads(capsys.readouterr().out)["whole"]
    assert found["capacity_rps"] == pytest.approx(10.6383, abs=1e-4)
    assert (found["binding"], found["load"]) == ("slots", pytest.approx(7 / 10.6383, rel=1e-4))
    assert (tmp_path / "c.png").stat().st_size > 10_000
    assert run_command(["capacity", file]) == 0
    assert "limited by" in capsys.readouterr().out


def test_capacity_shows_a_front_end_where_there_is_one(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is a row if a policy has one: 1 / 100 ms. Of the GPU, which it keeps from being full, no state is told."""
    assert run_command(["capacity", file]) == 0
    assert "front end" not in capsys.readouterr().out
    own = ["--set", "policies.whole.front_end.request_ms=100"]
    assert run_command(["capacity", file, *own]) == 0
    rows = {line.split("(")[0].strip(): line.split()[-2:] for line in capsys.readouterr().out.splitlines() if line}
    assert sorted(rows["front end alone"]) == ["-", "10"]
    assert any(line.startswith("running at capacity") and "-" in rows[line] for line in rows)


def test_capacity_checks_itself_with_a_backlog(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --check the JSON has what a backlog carries, with eight slots the closed form, to 5 % or its interval."""
    monkeypatch.setattr(capacity_command, "carried", partial(carried, most=400))
    assert run_command(["capacity", file, "--check", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["whole"]
    assert found["simulated_rps"] == pytest.approx(10.6383, abs=max(found["simulated_half_width_rps"], 0.5))


def test_capacity_says_that_a_backlog_disagrees(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An accuracy of 3 % is only said of a policy whose backlog, if there is one, allows it."""
    rates = {"whole": Carried(9.0, 0.2, 0.0, 400), "chunked": Carried(9.0, 3.0, 0.0, 400)}
    monkeypatch.setattr(capacity_command, "carried", lambda _: rates)
    asked = ["capacity", file, "--set", "policies.chunked.max_num_batched_tokens=4096"]
    assert run_command([*asked, "--check"]) == 0
    shown = capsys.readouterr().out
    assert "accuracy: capacity of chunked within 3 %" in shown
    assert "whole: the simulated backlog is 15% away: the capacity is wrong" in shown  # 9 / 10.6383
    assert run_command([*asked, "--check", "--json"]) == 0
    notes = {name: one["note"] for name, one in json.loads(capsys.readouterr().out).items()}
    assert "15% away" in notes["whole"]
    assert "away" not in notes["chunked"]
    assert run_command([*asked]) == 0
    assert "accuracy: capacity within 3 %" in capsys.readouterr().out


def test_nothing_is_said_of_an_accuracy_that_is_not_known(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where all capacities have bounds, the bounds say it."""
    assert run_command(["capacity", file, "--set", "kv_cache.blocks=120"]) == 0
    shown = capsys.readouterr().out
    assert "accuracy" not in shown
    assert shown.count("the capacity is between") == 2


def test_the_least_row_limits_and_missing_estimates_have_a_reason(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`limited by` is the least of the rows below it, also for compute, beside which nearly no cost is no limit."""
    for seats in (8, 4000):
        more = [f"policies.{name}.max_num_seqs={seats}" for name in ("whole", "chunked")]
        more += ["policies.whole.max_num_batched_tokens=100000", "policies.chunked.max_num_batched_tokens=100000"]
        assert run_command(["capacity", file, "--json", *(part for one in more for part in ("--set", one))]) == 0
        for found in json.loads(capsys.readouterr().out).values():
            rows = {name: rate for name, rate in found["limits_rps"].items() if rate is not None}
            assert min(rows, key=lambda name: rows[name]) == found["binding"]
            assert found["binding"] == ("slots" if seats == 8 else "compute")
    assert run_command(["capacity", file]) == 0
    assert "chunked: no estimates of latencies: prompts are computed in chunks" in capsys.readouterr().out


def test_theory_shows_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    """The list of formulas shows M/M^[b,b]/1 with its brackets, which are not markup."""
    assert run_command(["theory"]) == 0
    assert "M/M^[b,b]/1" in capsys.readouterr().out


def test_capacity_gives_the_reason_if_it_is_unknown(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A closed loop has no rate: the reason is an error, without a table; in JSON, the capacity is null."""
    loop = ["--set", "workload.arrivals=null", "--set", "workload.users={count: 5, think_s: 0.1}"]
    assert run_command(["capacity", file, *loop]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "no capacity, the workload has no fixed rate of requests" in err
    assert run_command(["capacity", file, *loop, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["whole"]["capacity_rps"] is None


def test_capacity_checks_the_figure_first(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A figure in an unknown format is an error before anything is printed."""
    assert run_command(["capacity", file, "--figure", "x.pdf"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "must end in .png or .svg" in err


def test_compare_on_the_command_line(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By default there are ten replications, with a verdict per row, as JSON and as a table."""
    assert run_command(["compare", file, "--metric", "p99_itl_ms", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)["comparisons"]
    assert [row["verdict"] for row in found] == ["better"]
    assert run_command(["compare", file, "--replications", "3", "--quiet"]) == 0
    assert "verdict" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--metric", "--metric: unknown metric 'p95_ttft'; did you mean 'p95_ttft_ms'?"),
        ("--baseline", "--baseline: unk"),
    ],
)
def test_compare_checks_names_before_the_runs(
    option: str, text: str, file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown metric or baseline is an error before anything is simulated."""
    monkeypatch.delattr("simqueue.cli.actions.compare.run")
    assert run_command(["compare", file, option, "p95_ttft", "--quiet"]) == 2
    assert text in capsys.readouterr().err


def test_run_takes_replications(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--replications adds half-widths to the table and writes one row per replication."""
    out = tmp_path / "out"
    assert run_command(["run", file, "--replications", "3", "--out", str(out), "--no-figures", "--quiet"]) == 0
    assert "±" in capsys.readouterr().out
    assert len((out / "replications.csv").read_text(encoding="utf-8").splitlines()) == 1 + 2 * 3


def test_verify_one_case(capsys: pytest.CaptureFixture[str]) -> None:
    """A built-in case agrees with theory; an unknown case is an error with the nearest name."""
    assert run_command(["verify", "--case", "slots-for-all", "--replications", "3"]) == 0
    assert "agrees" in capsys.readouterr().out
    assert run_command(["verify", "--case", "slots-for-al"]) == 2
    assert "did you mean 'slots-for-all'" in capsys.readouterr().err


def test_verify_without_an_exact_theory(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Eight slots with prefill have no exact theory: the note gives the reason, and the exit code is 0."""
    assert run_command(["verify", file, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["verdict"] for row in found} == {"no exact theory"}
    assert all(row["note"] for row in found)
