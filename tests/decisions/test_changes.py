"""What changed from one result to another: keys, metrics, limits, and the baseline file."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import simqueue as sq
from simqueue.cli import run_command
from simqueue.decisions.baseline import is_baseline, read_baseline
from simqueue.decisions.changes import Changes, State, changes_between
from simqueue.decisions.key_changes import ABSENT
from simqueue.decisions.recorded import Recorded, recorded
from simqueue.errors import InputError

Capture = pytest.CaptureFixture[str]
TOY: dict[str, Any] = {
    "name": "toy",
    "seed": 7,
    "step_time": {"kind": "linear", "overhead_s": 0.01, "per_prefill_token_s": 1e-4},
    "kv_cache": {"blocks": 1000},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 8},
        "num_requests": 40,
        "prompt_tokens": {"distribution": "constant", "value": 100},
        "output_tokens": {"distribution": "constant", "value": 5},
    },
    "policies": {"p": {"scheduler": "chunked", "max_num_seqs": 4}},
    "replications": 4,
}
FIXED = TOY | {
    "replications": 1,
    "workload": {"requests": [{"arrival_s": 0.1 * i, "prompt_tokens": 100, "output_tokens": 5} for i in range(9)]},
}


def kept(values: dict[str, dict[str, list[Any]]], **changed: Any) -> Recorded:
    """Return a result with these values by policy and column."""
    made = {policy: {name: tuple(own) for name, own in found.items()} for policy, found in values.items()}
    scenario = {"seed": 1, "policies": {policy: {"a": 1} for policy in values}}
    plain = Recorded("it", "1", 1, scenario, Path("/"), 0.95, True, made, {})
    return replace(plain, **changed)


def one(before: list[Any], after: list[Any], *limits: str, metric: str = "mean_ttft_ms", **changed: Any) -> Changes:
    """Return the change of one metric of one policy."""
    ends = (kept({"p": {metric: before}}, **changed), kept({"p": {metric: after}}, **changed))
    return changes_between(*ends, [metric], limits)


@pytest.mark.parametrize(
    ("before", "after", "limit", "state"),
    [
        ([100, 110, 120], [111, 121, 131], "+5%", "beyond"),
        ([100, 110, 120], [101, 111, 121], "+5%", "within"),
        ([100, 110, 120], [101, 131, 121], "+5%", "not told"),
        ([100, 110, 120], [80, 90, 100], "+5%", "within"),
        ([100, 110, 120], [80, 90, 100], "-5%", "beyond"),
        ([100, 110, 120], [80, 90, 100], "+-5%", "beyond"),
        ([100, 110, 120], [111, 121, 131], "+10", "beyond"),
        ([100, 110, 120], [110, 120, 130], "+10", "within"),
        ([0, 0, 0], [5, 6, 7], "+5%", "beyond"),
        ([0, 0, 0], [0, 0, 0], "+5%", "within"),
        ([100, 110, 120], [111, None, 131], "+5%", "beyond"),
        ([100, None, 120], [111, 121, 131], "+5%", "not told"),
        ([100], [111], "+5%", "not told"),
        ([100], [100], "+5%", "within"),
    ],
)
def test_limits_on_changes(before: list[Any], after: list[Any], limit: str, state: State) -> None:
    """Surely kept, surely not, or neither. What is no longer defined is beyond; a baseline of 0 has no share."""
    (row,) = one(before, after, f"mean_ttft_ms={limit}").rows
    (judged,) = row.limits
    assert judged.state == state
    assert (row.relative is None) == (None in (*before, *after) or not any(before))


def test_all_limits_hold_together() -> None:
    """An excess that is beyond one limit by itself is not told among a hundred others."""
    before, after = [100.0, 110, 120, 130], [107.0, 117, 129, 140.5]
    (row,) = one(before, after, "mean_ttft_ms=+5%").rows
    assert row.limits[0].state == "beyond"
    names = [f"mean_{i}_ms" for i in range(200)]
    ends = [kept({"p": dict.fromkeys(["mean_ttft_ms", *names], values)}) for values in (before, after)]
    many = changes_between(ends[0], ends[1], ["mean_ttft_ms"], [f"{name}=+5%" for name in ["mean_ttft_ms", *names]])
    assert many.rows[0].limits[0].state == "not told"


def test_replications_of_one_seed_are_paired_and_those_of_others_are_not() -> None:
    """Pairs take what both have. Other seeds are independent. Where nothing is random there is no chance."""
    (row,) = one([100, 110, 120], [101, 111.5, 121, 500]).rows
    assert (row.method, row.replications, row.before, row.verdict) == ("paired", (3, 3), 110, "worse")
    before, after = (kept({"p": {"mean_ttft_ms": found}}) for found in ([100, 110, 120], [101, 111, 121, 500]))
    (row,) = changes_between(before, replace(after, seed=2), ["mean_ttft_ms"]).rows
    assert (row.method, row.replications) == ("unpaired", (3, 4))
    (row,) = one([100], [101], "mean_ttft_ms=+0.5%", random=False).rows
    assert (row.method, row.verdict, row.limits[0].state) == ("exact", "worse", "beyond")


def test_policies_and_columns_of_one_result_only() -> None:
    """They are named, and a limit on them is not told; nothing in common at all is an error."""
    before = kept({"p": {"mean_ttft_ms": [1, 2], "old": [1, 2]}, "gone": {"mean_ttft_ms": [1, 2]}})
    after = kept({"p": {"mean_ttft_ms": [1, 2], "fresh": [1, 2]}, "new": {"mean_ttft_ms": [1, 2]}})
    found = changes_between(before, after, ["old", "fresh"], ["old=+-5%", "mean_ttft_ms=+5%"])
    assert (found.only_before, found.only_after) == (("gone",), ("new",))
    assert [row.verdict for row in found.rows] == ["no such column in it", "no such column in it", "the same"]
    assert found.limited("not told") == ("old=+-5% of p", "old=+-5% of gone", "mean_ttft_ms=+5% of gone")
    with pytest.raises(InputError, match="no policy in common"):
        changes_between(kept({"a": {"x": [1]}}), kept({"b": {"x": [1]}}))
    with pytest.raises(InputError, match="unknown metric 'frehs'"):
        changes_between(before, after, ["frehs"])


def test_the_same_scenario_run_again_is_the_same() -> None:
    """With the baseline's seed and replications, although the scenario has others; the table has the values of both."""
    first = sq.run(TOY)
    found = sq.changes(first, TOY | {"seed": 99, "replications": 1, "name": "other"}, limits=["p99_ttft_ms=0%"])
    assert found.keys == ()
    assert {row.verdict for row in found.rows if row.metric != "p99_ttft_ms"} == {"the same"}
    assert found.table["after"][0] == first.summary_rows[0]["mean_ttft_ms"]
    with pytest.raises(InputError, match="need a scenario"):
        sq.changes(first, first, seed=3)


def test_keys_that_differ_are_listed_with_both_values(tmp_path: Path) -> None:
    """Also keys inside what was null; the same file by another path is no difference, nor is a key with its default."""
    (tmp_path / "a").mkdir()
    trace = tmp_path / "t.jsonl"
    trace.write_text('{"arrival_s": 0, "prompt_tokens": 10, "output_tokens": 2}\n' * 5, encoding="utf-8")
    keys = FIXED | {"workload": {"trace": {"format": "jsonl", "path": str(trace)}}}
    first = sq.run(keys)
    first.save(tmp_path / "a" / "saved", figures=False)
    written = json.loads((tmp_path / "a" / "saved" / "scenario.json").read_text(encoding="utf-8"))
    del written["step_time_factor"], written["policies"]["p"]["step_time_factor"]  # as an older version
    written["workload"]["trace"]["path"] = "../../t.jsonl"
    (tmp_path / "a" / "saved" / "scenario.json").write_text(json.dumps(written), encoding="utf-8")
    other = copy.deepcopy(keys)
    other["policies"]["p"] |= {"max_num_seqs": 3, "fleet": {"replicas": 2}}
    found = {one.key: (one.before, one.after) for one in sq.changes(tmp_path / "a" / "saved", other).keys}
    assert found == {
        "policies.p.max_num_seqs": (4, 3),
        "policies.p.fleet.replicas": (ABSENT, 2),
    }


def test_a_file_with_another_content_is_a_change(tmp_path: Path) -> None:
    """A trace that was changed in its place is listed by its hash; the baseline remembers the old one."""
    trace = tmp_path / "t.jsonl"
    line = '{"arrival_s": 0, "prompt_tokens": 10, "output_tokens": 2}\n'
    trace.write_text(line * 5, encoding="utf-8")
    keys = FIXED | {"workload": {"trace": {"format": "jsonl", "path": str(trace)}}}
    sq.write_baseline(sq.run(keys), tmp_path / "base.json")
    assert sq.changes(tmp_path / "base.json", keys).keys == ()
    trace.write_text(line * 6, encoding="utf-8")
    (found,) = sq.changes(tmp_path / "base.json", keys).keys
    assert found.key == "content of workload.trace.path"
    assert found.after == f"sha256:{hashlib.sha256(trace.read_bytes()).hexdigest()[:12]}" != found.before


def test_a_baseline_file_holds_what_is_compared(tmp_path: Path) -> None:
    """It reads as the result that it was written from, has the same bytes each time, and its scenario can be run."""
    result = sq.run(TOY)
    file, again = tmp_path / "base.json", tmp_path / "again.json"
    sq.write_baseline(result, file)
    sq.write_baseline(read_baseline(file), again)
    assert file.read_bytes() == again.read_bytes()
    assert is_baseline(file)
    here, there = recorded(result), read_baseline(file)
    assert (there.values, there.seed, there.random) == (here.values, 7, True)
    assert json.loads(file.read_text(encoding="utf-8"))["scenario"] == result.scenario
    assert sq.changes(file, dict(there.scenario)).keys == ()
    assert len(file.read_bytes()) < 20_000


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"simqueue_baseline": 2}, "simqueue_baseline = 2"),
        ({"seeed": 1}, "unknown key 'seeed'"),
        ({"values": {"p": {"x": [1, 2], "y": [1]}}}, "one value per replication"),
        ({"values": {"p": {"x": ["1"]}}}, "values.p.x"),
        ({"confidence": 1.5}, "confidence"),
    ],
)
def test_a_file_that_is_no_baseline_is_an_error(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    """Other versions, unknown keys and damaged values are not compared."""
    file = tmp_path / "base.json"
    sq.write_baseline(kept({"p": {"x": [1, 2]}}), file)
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(InputError, match=words) as error:
        read_baseline(file)
    assert str(error.value).startswith(str(file))


def test_exit_codes_are_those_of_a_regression_test(tmp_path: Path, capsys: Capture) -> None:
    """0 within limits, 1 beyond one, 0 if it cannot be told, then 1 with --strict, 2 for bad input."""
    scenario, base = tmp_path / "toy.yaml", tmp_path / "base.json"
    scenario.write_text(json.dumps(TOY), encoding="utf-8")
    asked = ["run", str(scenario), "--json-summary", "--quiet", "--write-baseline", str(base)]
    assert run_command(asked) == 0
    compare = ["compare", str(base), str(scenario), "--quiet", "--metric", "mean_ttft_ms"]
    assert run_command([*compare, "--limit", "mean_e2el_ms=+5%", "--limit", "request_throughput=-5%"]) == 0
    slower = ["--set", "step_time.overhead_s=0.012"]
    capsys.readouterr()
    assert run_command([*compare, "--limit", "mean_e2el_ms=+5%", *slower]) == 1
    out = capsys.readouterr().out
    assert "step_time.overhead_s: 0.01 -> 0.012" in out
    assert "beyond the limit: mean_e2el_ms=+5% of p" in out
    other_seed = [*compare, "--seed", "8", "--limit", "mean_ttft_ms=+0.1%"]
    assert run_command(other_seed) == 0
    assert run_command([*other_seed, "--strict"]) == 1
    assert "cannot be told" in capsys.readouterr().out
    new = tmp_path / "new.json"
    assert run_command([*compare, "--json", "--write-baseline", str(new), *slower]) == 0
    assert json.loads(capsys.readouterr().out)["changes"][0]["verdict"] == "worse"
    assert run_command(["compare", str(new), str(base), "--quiet"]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("TOY", "TOY"), "must be a folder written by `simqueue run`, or a baseline file"),
        (("none.json", "TOY"), "must be a folder"),
        (("BASE", "none.yaml"), "none.yaml"),
        (("BASE", "BASE", "--set", "seed=1"), "need a scenario"),
        (("BASE", "TOY", "--baseline", "p"), "--baseline: compares policies"),
        (("BASE", "TOY", "--limit", "x"), "--limit x"),
        (("TOY", "--limit", "mean_ttft_ms=1"), "--limit: "),
        (("BASE",), "BASE"),
        (("BASE", "TOY", "--write-baseline", "x.yaml"), "must end in .json"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, capsys: Capture, arguments: tuple[str, ...], words: str) -> None:
    """Exit code 2, before anything is run."""
    names = {"TOY": tmp_path / "toy.yaml", "BASE": tmp_path / "base.json"}
    names["TOY"].write_text(json.dumps(TOY), encoding="utf-8")
    sq.write_baseline(kept({"p": {"mean_ttft_ms": [1, 2]}}), names["BASE"])
    assert run_command(["compare", *(str(names.get(one, one)) for one in arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert str(names.get(words, words)) in printed.err
    assert len(printed.err.splitlines()) == 1
