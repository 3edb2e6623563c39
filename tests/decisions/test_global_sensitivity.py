"""Global sensitivities against functions and scenarios whose indices are known."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.cli import run_command
from simqueue.decisions.factors import error_factors
from simqueue.decisions.screening import indices, shares_of
from simqueue.errors import InputError, RunError
from simqueue.execution import ThisProcess
from simqueue.scenario import from_mapping
from simqueue.sweeps.axes import axis_of

OVERHEAD, PROMPT = "step_time.overhead_s", "workload.prompt_tokens.value"
ALONE: dict[str, Any] = {
    "step_time": {"kind": "linear", "overhead_s": 0.015, "per_prefill_token_s": 1e-4},
    "kv_cache": {"blocks": 1000},
    "workload": {
        "arrivals": {"process": "constant", "rate_rps": 1},
        "num_requests": 2,
        "prompt_tokens": {"distribution": "constant", "value": 50},
        "output_tokens": {"distribution": "constant", "value": 4},
    },
    "policies": {"p": {"scheduler": "chunked", "max_num_seqs": 4}},
}
"""Each request is alone: its E2EL is 4 steps, and what its prompt takes."""
RANGES = {OVERHEAD: "0.01:0.02", PROMPT: "10:100"}
H100: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm",
    "step_time": {"kind": "roofline", "preset": "vllm-h100"},
    "workload": ALONE["workload"],
    "policies": {"one": {"scheduler": "chunked"}},
}


def ishigami(shares: Any) -> list[float]:
    """Return the function of Ishigami and Homma with a = 7 and b = 0.1 of three inputs from -pi to pi."""
    x = -math.pi + 2 * math.pi * shares
    made = np.sin(x[:, 0]) + 7 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])
    return [float(value) for value in made]


def test_sobol_indices_of_ishigamis_function() -> None:
    """Its variance is known: V1 = (1 + b pi^4 / 5)^2 / 2, V2 = a^2 / 8, V13 = 8 b^2 pi^8 / 225."""
    shares = shares_of("sobol", 3, 1024, 3)
    found = indices("sobol", shares, ishigami(shares), 3)
    v1, v2, v13 = (1 + 0.1 * math.pi**4 / 5) ** 2 / 2, 49 / 8, 8 * 0.01 * math.pi**8 / 225
    total = v1 + v2 + v13
    exact = [(v1 / total, (v1 + v13) / total), (v2 / total, v2 / total), (0, v13 / total)]
    for own, values in zip(found, exact, strict=True):
        assert [one.name for one in own] == ["S1", "ST"]
        for one, value in zip(own, values, strict=True):
            assert one.value == pytest.approx(value, abs=0.06)
            assert one.low is not None
            assert one.high is not None
            assert one.low - 0.01 <= value <= one.high + 0.01


def test_morris_indices_of_a_line_are_its_slopes() -> None:
    """Effects are per whole range. A product bends: its sigma is that of the effects, computed one by one here."""
    shares = shares_of("morris", 3, 12, 5)
    line = indices("morris", shares, [float(x @ [3, -2, 0]) for x in shares], 5)
    for own, (mu_star, mu) in zip(line, [(3, 3), (2, -2), (0, 0)], strict=True):
        values = {one.name: one.value for one in own}
        assert values == pytest.approx({"mu_star": mu_star, "mu": mu, "sigma": 0}, abs=1e-9)
    product = [float(x[0] * x[1]) for x in shares]
    effects: list[list[float]] = [[], [], []]
    for start in range(0, len(shares), 4):
        for at in range(start, start + 3):
            step = shares[at + 1] - shares[at]
            moved = int(np.argmax(np.abs(step)))
            effects[moved].append((product[at + 1] - product[at]) / step[moved])
    for own, values in zip(indices("morris", shares, product, 5), effects, strict=True):
        found = {one.name: one for one in own}
        assert found["mu"].value == pytest.approx(np.mean(values))
        assert found["mu_star"].value == pytest.approx(np.mean(np.abs(values)))
        assert found["sigma"].value == pytest.approx(np.std(values, ddof=1))
        low, high = found["sigma"].low, found["sigma"].high
        assert low is not None
        assert high is not None
        assert low <= np.std(values, ddof=1) <= high


def test_the_shares_of_the_variance_of_a_request_alone_are_those_of_a_formula() -> None:
    """E2EL = factor (4 overhead + 1e-4 prompt): a product, whose variance is known; whole numbers are all drawn."""
    over = {**RANGES, "step_time_factor": "0.8:1.2"}
    found = sq.global_sensitivity(ALONE, over, method="sobol", metrics=["mean_e2el_ms"], points=16, workers=1)
    own = {row.factor: {one.name: one.value for one in row.indices} for row in found.rows}
    factor_2, mean = 1 + 0.4**2 / 12, 4 * 0.015 + 1e-4 * 55
    of_overhead, of_prompt = 16 * 0.01**2 / 12, 1e-8 * (91**2 - 1) / 12
    total = factor_2 * (mean**2 + of_overhead + of_prompt) - mean**2
    exact = {
        OVERHEAD: factor_2 * of_overhead / total,
        PROMPT: factor_2 * of_prompt / total,
        "step_time_factor": (mean**2 + of_overhead + of_prompt) * 0.4**2 / 12 / total,
    }
    assert {key: own[key]["ST"] for key in exact} == pytest.approx(exact, abs=0.1)
    cells = found.sweep.cells
    assert len(cells) <= 16 * 5  # points with the same whole numbers are run once
    assert cells[PROMPT].between(10, 100).all()
    assert cells[PROMPT].dtype == "Int64"
    assert set(found.table.columns) >= {"policy", "metric", "factor", "S1", "ci_low_ST"}


def test_the_effects_on_a_request_alone_are_those_of_a_formula() -> None:
    """4 steps of 10 ms more, and 90 tokens of 0.1 ms; throughput and seats do not matter to it."""
    over = {**RANGES, "policies.p.max_num_seqs": [1, 4, 16]}
    found = sq.global_sensitivity(ALONE, over, metrics=["mean_e2el_ms"], points=4, workers=1)
    own = {row.factor: {one.name: one.value for one in row.indices} for row in found.rows}
    assert own[OVERHEAD]["mu_star"] == pytest.approx(1000 * 4 * 0.01, rel=1e-9)
    assert own[PROMPT]["mu_star"] == pytest.approx(1000 * 1e-4 * 91, rel=0.02)
    assert own["policies.p.max_num_seqs"]["mu_star"] == 0
    assert found.notes == ("the error of the step times is left out: no policy has those of a preset",)
    assert found.replications == 4


def test_what_does_not_vary_has_no_shares_of_a_variance() -> None:
    """No share is made up."""
    over = {"policies.p.max_num_seqs": [1, 4]}
    found = sq.global_sensitivity(ALONE, over, method="sobol", metrics=["mean_e2el_ms"], points=2, workers=1)
    assert [one.value for one in found.rows[0].indices] == [None, None]


def test_the_error_of_the_step_times_is_an_input() -> None:
    """Around the factor of the policy, by the published error: TPOT is proportional to it."""
    row = sq.run(H100).summary_rows[0]
    share, tpot_ms = row["model_error_pct"] / 100, row["mean_tpot_ms"]  # type: ignore[operator] # a fitted preset
    assert share > 0
    over = {PROMPT: "10:100"}
    options: dict[str, Any] = {"metrics": ["mean_tpot_ms"], "points": 2, "replications": 1, "workers": 1}
    found = sq.global_sensitivity(H100 | {"step_time_factor": 2}, over, **options)
    low, high = map(float, found.factors["step_time_factor"].split(":"))
    assert (low, high) == pytest.approx((2 * (1 - share), 2 * (1 + share)))
    moved = {row.factor: row.indices[0].value for row in found.rows}
    assert moved["step_time_factor"] == pytest.approx(2 * tpot_ms * 2 * share, rel=0.05)  # type: ignore[operator] # known
    assert list(sq.global_sensitivity(H100, over, model_error=False, **options).factors) == [PROMPT]


def test_policies_on_other_gpus_have_an_error_of_their_own() -> None:
    """One input for each preset on its GPUs; none if a factor is varied already; a fleet with two factors has none."""
    both = {"a": {"scheduler": "chunked"}, "b": {"scheduler": "static"}, "two": {"scheduler": "chunked"}}
    both["two"] |= {"tensor_parallel": 2}
    scenario = from_mapping(H100 | {"policies": both}).resolve()
    made, notes = error_factors(scenario, (), ThisProcess())
    assert [factor.name for factor in made] == ["step_time_factor of a, b", "step_time_factor of two"]
    assert [axis.key for axis in made[0].axes] == ["policies.a.step_time_factor", "policies.b.step_time_factor"]
    assert notes == ()
    given = axis_of("policies.a.step_time_factor", "1:2", "--over")
    made, notes = error_factors(scenario, (given,), ThisProcess())
    assert made == ()
    assert "is given" in notes[0]
    fleet = {"groups": {"old": {"step_time_factor": 2}, "new": {}}}
    with pytest.raises(InputError, match="group old of its replicas has a step_time_factor of its own"):
        error_factors(from_mapping(H100 | {"fleet": fleet}).resolve(), (), ThisProcess())


def test_a_metric_that_is_undefined_at_a_point_is_an_error_that_names_both() -> None:
    """A single token has no TPOT. A point that is no scenario is named too."""
    with pytest.raises(RunError, match=r"mean_tpot_ms of p is undefined at workload\.output_tokens\.value=1: "):
        sq.global_sensitivity(
            ALONE, {"workload.output_tokens.value": "1:2"}, metrics=["mean_tpot_ms"], points=2, workers=1
        )
    with pytest.raises(RunError, match=r"the point policies\.p\.max_num_batched_tokens=2"):
        sq.global_sensitivity(ALONE, {"policies.p.max_num_batched_tokens": [2, 64]}, points=2, workers=1)


@pytest.mark.parametrize(
    ("over", "options", "words"),
    [
        ({}, {}, "there is no input to vary"),
        ({OVERHEAD: [0.1]}, {}, "needs a range LOW:HIGH"),
        ({OVERHEAD: "2:1"}, {}, "HIGH must be the larger one"),
        (RANGES, {"method": "sobel"}, "did you mean 'sobol'"),
        (RANGES, {"method": "sobol", "points": 20}, "must be a power of 2"),
        (RANGES, {"points": 1}, "points = 1"),
        (RANGES, {"metrics": ["mean_tft_ms"]}, "did you mean 'mean_ttft_ms'"),
        ({"workload.rate": "1:2"}, {}, "rate"),
    ],
)
def test_bad_input_is_an_error_before_anything_is_run(
    over: dict[str, Any], options: dict[str, Any], words: str
) -> None:
    """Each in one line."""
    with pytest.raises(InputError) as error:
        sq.global_sensitivity(ALONE, over, **options)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_without_salib_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra of the package."""
    monkeypatch.setitem(sys.modules, "SALib.sample.morris", None)
    with pytest.raises(InputError, match=r"pip install 'simqueue\[decide\]'"):
        sq.global_sensitivity(ALONE, RANGES)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with the strongest factor first, JSON, a figure, and points that a second call does not run again."""
    monkeypatch.setenv("COLUMNS", "160")
    file = tmp_path / "alone.yaml"
    file.write_text(json.dumps(ALONE), encoding="utf-8")
    figure, out = tmp_path / "f.png", tmp_path / "out"
    asked = ["sensitivity", str(file), "--points", "2", "--metric", "mean_e2el_ms", "--quiet", "--workers", "1"]
    asked += [word for key, text in RANGES.items() for word in ("--over", f"{key}={text}")]
    assert run_command([*asked, "--out", str(out), "--figure", str(figure)]) == 0
    text = capsys.readouterr().out
    assert text.index(f" {OVERHEAD} ") < text.index(f" {PROMPT} ")
    assert figure.stat().st_size > 5000
    assert run_command([*asked, "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["factors"] == RANGES
    assert [row["factor"] for row in found["indices"]] == [OVERHEAD, PROMPT]
    for wrong, words in (
        (["--to", OVERHEAD], "--to, --over"),
        (["--step", "0.1"], "--step: is for --to"),
        (["--over", "x"], "--over x"),
        (["--figure", "f.gif"], "must end in .png or .svg"),
    ):
        assert run_command([*asked, *wrong]) == 2
        assert words in capsys.readouterr().err
    assert run_command(["sensitivity", str(file)]) == 2
    assert run_command(["sensitivity", str(file), "--to", OVERHEAD, "--points", "4"]) == 2
