"""Runs at both ends of the published error of the step times, and answers that do not hold there."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import simqueue as sq
from simqueue.cli import run_command
from simqueue.errors import InputError
from simqueue.experiment.best_at_errors import best_at_errors
from simqueue.experiment.comparing import compared
from simqueue.experiment.held import held
from simqueue.experiment.model_error import NO_PRESET, error_source, published_error, published_errors
from simqueue.report.text import notes
from simqueue.scenario import from_mapping
from simqueue.scenario.factors import with_factors

H100: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm",
    "step_time": {"kind": "roofline", "preset": "vllm-h100"},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 6},
        "num_requests": 40,
        "prompt_tokens": {"distribution": "uniform", "low": 100, "high": 900},
        "output_tokens": {"distribution": "geometric", "mean": 40},
    },
    "policies": {"p": {"scheduler": "chunked", "max_num_seqs": 16}},
}


def test_the_published_error_is_that_of_the_summary() -> None:
    """Its two factors are 1 - e and 1 + e; without a preset there are none, and the reason is said."""
    result = sq.run(H100 | {"policies": H100["policies"] | {"free": {"scheduler": "static", "step_time": CONSTANT}}})
    found = published_errors(result)
    percent = result.summary_rows[0]["model_error_pct"]
    assert isinstance(percent, float)
    assert found["p"].factors == pytest.approx((1 - percent / 100, 1 + percent / 100))
    assert (found["free"].share, found["free"].reason, found["free"].factors) == (None, NO_PRESET, None)


@pytest.mark.parametrize("percent", [None, 0.0, 100.0, 250.0])
def test_an_error_without_two_factors_has_a_reason(percent: float | None) -> None:
    """A factor must be above 0, and nothing is made up for what was not measured."""
    found = published_error({"model_error_pct": percent, "model_error_regime": "another GPU"})
    assert found.factors is None
    assert found.reason


CONSTANT = {"kind": "constant", "seconds": 0.01}


def test_factors_of_a_resolved_scenario_are_those_of_its_key() -> None:
    """The same bytes as with the key in the file, also in the groups of a fleet, and on top of a factor."""
    fleet = {"groups": {"a": {"step_time_factor": 2}, "b": {"replicas": 2}}}
    policies = {"p": H100["policies"]["p"] | {"fleet": fleet}, "q": H100["policies"]["p"]}
    scenario = from_mapping(H100 | {"policies": policies}).resolve()
    by_key = ["policies.p.fleet.groups.a.step_time_factor=3", "policies.p.fleet.groups.b.step_time_factor=1.5"]
    written = from_mapping(H100 | {"policies": policies}, [*by_key, "policies.p.step_time_factor=1.5"]).resolve()
    made = with_factors(scenario, {"p": 1.5})
    assert made.values == written.values
    for one, other in zip(made.policies, written.policies, strict=True):
        assert one.step_time == other.step_time
    assert made.policies[0].fleet is not None
    assert written.policies[0].fleet is not None
    for ours, theirs in zip(made.policies[0].fleet.groups, written.policies[0].fleet.groups, strict=True):
        assert ours.policy.step_time == theirs.policy.step_time
    with pytest.raises(InputError, match="unknown policy 'r'"):
        with_factors(scenario, {"r": 1.5})


def test_errors_have_one_source_where_preset_and_gpus_are_the_same() -> None:
    """Two policies on the same GPUs are wrong together; on other GPUs, or other numbers of them, each for itself."""
    policies = {"p": {"scheduler": "chunked"}, "q": {"scheduler": "static"}, "r": {"scheduler": "static"}}
    policies["r"] |= {"tensor_parallel": 2}
    p, q, r = map(error_source, from_mapping(H100 | {"policies": policies}).resolve().policies)
    assert p == q != r
    assert p == ("vllm-h100 on 1 x h100-sxm",)


@pytest.mark.parametrize("replications", [1, 2])
def test_widened_intervals_reach_as_far_as_runs_with_the_factors_in_the_file(replications: int) -> None:
    """They contain the values, and the intervals if there are replications, of all three runs, and end with one."""
    scenario = H100 | {"replications": replications}
    plain = sq.run(scenario)
    factors = published_errors(plain)["p"].factors
    assert factors is not None
    rows = [sq.run(scenario | {"step_time_factor": factor}).summary_rows[0] for factor in (1, *factors)]
    found = sq.run(scenario, with_model_error=True)
    (row,) = found.summary_rows
    assert (row["step_time_factor_low"], row["step_time_factor_high"]) == factors
    for name in ("mean_ttft_ms", "p95_tpot_ms", "request_throughput"):
        low, high = (f"ci_{end}_{name}" if replications > 1 else name for end in ("low", "high"))
        assert row[name] == plain.summary_rows[0][name]
        assert row[f"ci_low_{name}"] == min(one[low] for one in rows)
        assert row[f"ci_high_{name}"] == max(one[high] for one in rows)
    assert any("widened" in line for line in notes(found))
    assert found.summary["ci_high_mean_ttft_ms"][0] == row["ci_high_mean_ttft_ms"]
    assert plain.summary_rows == sq.run(scenario).summary_rows


def test_a_policy_without_a_published_error_keeps_what_it_has() -> None:
    """Beside a policy with an error it has no wider interval, and of a single run none."""
    policies = H100["policies"] | {"free": {"scheduler": "chunked", "step_time": CONSTANT}}
    found = sq.run(H100 | {"policies": policies}, with_model_error=True)
    own = found.summary_rows[1]
    assert (own["ci_low_mean_ttft_ms"], own["step_time_factor_high"]) == (None, None)
    assert found.summary_rows[0]["ci_low_mean_ttft_ms"] is not None
    assert any("free: none known" in line for line in notes(found))


def test_an_overload_within_the_error_and_values_that_are_lost_by_it_are_said() -> None:
    """A policy that keeps up only if its steps are no longer than the preset says has a warning, and no intervals."""
    workload = H100["workload"] | {"arrivals": {"process": "poisson", "rate_rps": 30}, "num_requests": 1500}
    found = sq.run(H100 | {"workload": workload, "warmup_s": 3}, with_model_error=True)
    (row,) = found.summary_rows
    assert (row["overloaded"], row["ci_high_mean_ttft_ms"]) == (False, None)
    assert any("overloaded if its steps take" in line for line in found.warnings)
    assert any("mean_ttft_ms" in line and "undefined if" in line for line in found.warnings)


def test_a_limit_inside_the_widened_interval_is_unclear() -> None:
    """A limit that is met with the steps of the preset, and not with longer ones, is not said to be met."""
    plain = sq.run(H100).summary_rows[0]
    limit = float(plain["mean_tpot_ms"] or 0) * 1.01
    scenario = H100 | {"slo": {"mean_tpot_ms": limit}}
    assert sq.run(scenario).summary_rows[0]["met_mean_tpot_ms"] is True
    assert sq.run(scenario, with_model_error=True).summary_rows[0]["met_mean_tpot_ms"] is None


CLOSE: dict[str, Any] = H100 | {
    "workload": H100["workload"] | {"num_requests": 20},
    "policies": {
        "one": {"scheduler": "chunked", "max_num_seqs": 64},
        "few": {"scheduler": "chunked", "max_num_seqs": 2},
        "two": {"scheduler": "chunked", "max_num_seqs": 64, "tensor_parallel": 2, "step_time_factor": 1.45},
    },
    "replications": 4,
}


def test_verdicts_hold_where_policies_are_off_together_and_flip_where_they_need_not_be() -> None:
    """Policies on the same GPUs are off together. One GPU against two slower ones flips, by runs with the factors."""
    scenario = from_mapping(CLOSE).resolve()
    found = held(scenario, sq.run, None, ["mean_tpot_ms", "mean_e2el_ms"])
    share = found.errors.known["one"].share or 0
    assert share > 0
    by_policy = {(one.row.metric, one.row.policy): one for one in found.rows}
    few, two = by_policy["mean_e2el_ms", "few"], by_policy["mean_tpot_ms", "two"]
    assert few.holds == "holds"
    assert [(one.factor, one.baseline_factor) for one in few.elsewhere] == [
        (1 - share, 1 - share),
        (1 + share, 1 + share),
    ]
    assert len(two.elsewhere) == 4
    verdicts = set()
    for own in (1 - share, 1 + share):
        for base in (1 - share, 1 + share):
            policies = {
                "one": CLOSE["policies"]["one"] | {"step_time_factor": base},
                "two": CLOSE["policies"]["two"] | {"step_time_factor": 1.45 * own},
            }
            (row,) = compared(sq.run(CLOSE | {"policies": policies}), None, ["mean_tpot_ms"])
            (same,) = [one for one in two.elsewhere if (one.factor, one.baseline_factor) == (own, base)]
            assert same.row.found is not None
            assert row.found is not None
            assert same.row.found.difference.value == pytest.approx(row.found.difference.value, rel=1e-9)
            verdicts.add(row.verdict)
    assert verdicts == {"better", "worse"}
    assert (two.holds, two.line.startswith("flips within the published error: ")) == ("flips", True)
    told = json.loads(json.dumps(two.plain()))["model_error"]
    assert (told["holds"], len(told["elsewhere"])) == ("flips", 4)


def test_the_best_policy_is_looked_for_where_it_could_lose() -> None:
    """All off together, and the best one against the others: there another one is the best."""
    scenario = from_mapping(CLOSE | {"policies": {name: CLOSE["policies"][name] for name in ("one", "two")}}).resolve()
    found = best_at_errors(scenario, partial(sq.best, metric="mean_tpot_ms"))
    winner, other = found.selection.best, next(name for name in ("one", "two") if name != found.selection.best)
    assert [one.selection.best for one in found.elsewhere] == [winner, winner, other]
    assert found.holds == "flips"
    assert found.elsewhere[2].factors[winner] > 1 > found.elsewhere[2].factors[other]


def test_commands_print_what_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """compare and run with --with-model-error; without a preset it is an error before any run."""
    file = tmp_path / "close.yaml"
    file.write_text(json.dumps(CLOSE), encoding="utf-8")
    asked = ["compare", str(file), "--with-model-error", "--metric", "mean_tpot_ms", "--quiet"]
    assert run_command(asked) == 0
    out = capsys.readouterr().out
    assert "flips within the published error" in out
    assert "of 2 verdicts hold" in out
    assert run_command(["run", str(file), "--with-model-error", "--stream", str(tmp_path / "s")]) == 2
    assert "--with-model-error, --stream" in capsys.readouterr().err
    constant = ["--set", "step_time={kind: constant, seconds: 1}"]
    for command in ("run", "best"):
        assert run_command([command, str(file), "--with-model-error", *constant]) == 2
        assert "no policy has step times of a preset" in capsys.readouterr().err
