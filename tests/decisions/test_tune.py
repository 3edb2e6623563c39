"""The cheapest system that keeps its limits: against spaces that are enumerated whole, and what is told about them."""

import json
from itertools import product
from time import monotonic
from types import SimpleNamespace

import pytest

import simqueue as sq
from simqueue.decisions import budget
from simqueue.decisions.tuning import contender, model_error, proposals, race, runs
from simqueue.decisions.tuning.answer import AtErrors, Elsewhere
from simqueue.decisions.tuning.tune import tune
from simqueue.errors import InputError
from simqueue.execution.here import ThisProcess

PRICES = {"slow": 1.0, "fast": 2.5}
STEP = {"kind": "linear", "overhead_s": 0.02, "per_prefill_token_s": 2e-5, "per_decode_s": 2e-4}


def keys(rate_rps=6.0, requests=300, **policy):
    """Return the keys of a scenario with one policy, whose steps take a known time."""
    return {
        "step_time": STEP,
        "kv_cache": {"blocks": 4000},
        "max_model_len": 4000,
        "usd_per_gpu_hour": 2,
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": rate_rps},
            "num_requests": requests,
            "prompt_tokens": {"distribution": "uniform", "low": 50, "high": 400},
            "output_tokens": {"distribution": "geometric", "mean": 40},
        },
        "policies": {"one": {"scheduler": "chunked", "max_num_seqs": 64, **policy}},
    }


def enumerated(scenario, space, limits, replications):
    """Return cost and mean E2EL of each system that keeps limits on columns, by its values: all of them are run."""
    kept = {}
    for values in product(*space.values()):
        overrides = [f"{key}={json.dumps(value)}" for key, value in zip(space, values, strict=True)]
        found = sq.run(scenario, overrides=[*overrides, f"replications={replications}"], workers=1)
        row = found.summary_rows[0]
        gpus = found.scenario["policies"]["one"]["tensor_parallel"]
        fleet = found.scenario["policies"]["one"]["fleet"]
        gpus *= 1 if fleet is None else fleet["replicas"]
        is_steady = row["overloaded"] is not True
        if is_steady and all(row[column] <= limit for column, limit in limits.items()):
            kept[values] = (2.0 * gpus, row["mean_e2el_ms"])
    return kept


def test_the_cheapest_system_is_that_of_the_whole_space():
    """Of the same cost, the one with the smallest E2EL. Even in so small a space, few systems are run often."""
    scenario, limits = keys(), {"p99_ttft_ms": 400, "p99_itl_ms": 45}
    space = {"policies.one.max_num_seqs": [2, 16, 64], "fleet.replicas": [1, 2]}
    space |= {"policies.one.max_num_batched_tokens": [256, 2048]}
    kept = enumerated(scenario, space, limits, 2)
    found = tune(scenario, space, [f"{column}<={limit}" for column, limit in limits.items()], workers=1)
    cheapest = min(cost for cost, _ in kept.values())
    values = tuple(found.best.values.values())
    assert found.best.usd_per_hour == cheapest
    fastest = min(e2el for cost, e2el in kept.values() if cost == cheapest)
    assert kept[values][1] <= 1.02 * fastest
    assert found.best.state == "best"
    assert all(judged.verdict == "met" for judged in found.best.limits)
    assert found.spent.runs < 12 * found.best.replications / 2


def test_what_the_law_rules_out_is_never_run():
    """Two seats serve about 2 / (40 steps of 20 ms) = 2.5 requests/s, and one replica of them not 6."""
    found = tune(keys(), {"max_num_seqs": [1, 2]}, ["p99_ttft_ms<=1000"], workers=1)
    assert found.best is None
    assert (found.spent.runs, found.spent.short_runs) == (0, 0)
    assert found.fallen == {"cannot serve the load (slots limits)": 2}


def test_no_system_is_an_answer_with_the_nearest_miss():
    """A step takes more than 20 ms, so no first token comes in 5 ms, and none in 15."""
    found = tune(keys(), {"max_num_seqs": [32, 64]}, ["mean_ttft_ms<=15"], workers=1)
    assert found.best is None
    assert found.nearest.margin > 20 / 15
    assert found.fallen == {"mean_ttft_ms<=15 is not kept": 2}
    assert found.plain()["best"] is None
    assert found.plain()["nearest_miss"]["number"] == found.nearest.number


def test_what_is_no_system_has_its_reason():
    """The others go on."""
    scenario = {**keys(), "model": "llama-3.1-8b"}
    found = tune(scenario, {"max_num_seqs": [64, 0], "tensor_parallel": [1]}, ["p99_ttft_ms<=2000"], workers=1)
    assert found.best.values == {"max_num_seqs": 64, "tensor_parallel": 1}
    (other,) = found.standings[1:]
    assert other.state == "is no system"
    assert other.reason == "must be >= 1"


def test_the_same_system_is_run_once():
    """One replica needs no router."""
    space = {"fleet.replicas": [1], "fleet.router": ["round_robin", "random"]}
    found = tune(keys(), space, ["p99_ttft_ms<=2000"], workers=1)
    assert [one.reason for one in found.standings] == ["", "the same system as candidate 1"]


class Backwards(ThisProcess):
    """Does tasks in this process, the last one first."""

    def pays(self, seconds):
        """Return that it is always worth it."""
        return True

    def unordered(self, function, tasks):
        """Yield the outcomes in the wrong order."""
        return iter(list(super().unordered(function, tasks))[::-1])


def test_the_answer_does_not_depend_on_the_order_of_runs():
    """Other processes are done at other times."""
    space, slo = {"max_num_seqs": [16, 64], "fleet.replicas": [1, 2]}, ["p99_ttft_ms<=300"]
    found = [tune(keys(), space, slo, workers=workers) for workers in (1, Backwards())]
    assert json.dumps(found[0].plain()) == json.dumps(found[1].plain())


def test_a_system_that_refuses_requests_does_not_serve_them():
    """Percentiles are of requests that finish, so lost ones have a limit of their own."""
    scenario = keys(rate_rps=5, requests=400) | {"max_queued_requests": 0}
    found = tune(scenario, {"max_num_seqs": [1, 64]}, ["p99_ttft_ms<=1000"], workers=1)
    assert found.best.values == {"max_num_seqs": 64}
    assert found.standings[1].reason == "lost_share<=0.01 is not kept"


def test_one_run_decides_where_nothing_is_random():
    """Listed requests: the value of the run is what there is."""
    scenario = keys()
    listed = [{"arrival_s": i / 4, "prompt_tokens": 100, "output_tokens": 10} for i in range(120)]
    scenario["workload"] = {"requests": listed}
    found = tune(scenario, {"max_num_seqs": [1, 8], "fleet.replicas": [1, 2]}, ["p99_ttft_ms<=60"], workers=1)
    assert found.best.replications == 1
    assert any("nothing in the traffic is random" in note for note in found.notes)
    alone = sq.run(scenario, overrides=["policies.one.max_num_seqs=1"]).summary_rows[0]["p99_ttft_ms"]
    assert (found.best.values["max_num_seqs"] == 1) == (alone <= 60)
    assert found.best.gpus == 1


def test_the_best_value_of_a_metric():
    """E2EL falls with replicas: the largest number is best, whatever it costs."""
    space = {"fleet.replicas": [1, 4], "policies.one.max_num_seqs": [5, 64]}
    found = tune(keys(), space, ["p99_ttft_ms<=2000"], minimize="mean_e2el_ms", workers=1)
    kept = enumerated(keys(), space, {"p99_ttft_ms": 2000}, 2)
    values = (found.best.values["fleet.replicas"], found.best.values["max_num_seqs"])
    assert kept[values][1] <= 1.02 * min(e2el for _, e2el in kept.values())
    assert found.goal == "mean_e2el_ms"


@pytest.mark.parametrize("most", [1, 5, 7])
def test_a_budget_of_runs_is_used_whole(most):
    """Six systems have short runs, and then whole ones: no number of runs is too small to be begun."""
    space = {"max_num_seqs": [8, 16, 32, 64, 96, 128]}
    found = tune(keys(requests=600), space, ["p99_ttft_ms<=2000"], max_runs=most, workers=1)
    assert found.best is None
    assert found.stopped == f"budget of {most} runs"
    assert (found.spent.short_runs, found.spent.runs) == (min(most, 6), max(0, most - 6))
    assert [one.reason for one in found.standings if one.state == "not run"] == ["the search ended before"] * (6 - most)


def test_a_budget_of_time_is_looked_at_before_each_run(monkeypatch):
    """With a clock that goes on by one second per run, 3.5 s are four runs."""
    made, play_one, now_s = [], runs._play, monotonic()

    def play(task):
        made.append(task)
        return play_one(task)

    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: now_s + len(made)))
    monkeypatch.setattr(runs, "_play", play)
    found = tune(keys(), {"max_num_seqs": [8, 16, 32, 64, 96]}, ["p99_ttft_ms<=2000"], budget_s=3.5, workers=1)
    assert len(made) == found.spent.runs + found.spent.short_runs == 4
    assert found.stopped == "budget of 3.5 s"


def test_without_prices_the_cost_is_the_number_of_gpus():
    """It is said, and prices of some are not mixed with it."""
    scenario = keys() | {"usd_per_gpu_hour": None}
    found = tune(scenario, {"fleet.replicas": [1, 2]}, ["p99_ttft_ms<=2000"], workers=1)
    assert found.goal == "GPUs"
    assert found.best.gpus == 1
    assert any(note.startswith("the cost is the number of GPUs: no price") for note in found.notes)


def test_a_written_scenario_gives_the_values_that_were_told(tmp_path):
    """A run of it with as many replications has the same requests, and so the same percentile."""
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(json.dumps(keys(requests=300)), encoding="utf-8")
    found = tune(scenario, {"fleet.replicas": [1, 2]}, ["p99_ttft_ms<=800", "ttft_ms<=700"], workers=1)
    written = found.save(tmp_path / "out")
    assert [path.name for path in written[:3]] == ["tune.json", "systems.csv", "best-1.yaml"]
    best = found.best
    again = sq.run(tmp_path / "out" / "best-1.yaml", overrides=[f"replications={best.replications}"], workers=1)
    told = {judged.condition.column: judged.value for judged in best.limits}
    assert again.summary_rows[0]["p99_ttft_ms"] == told["p99_ttft_ms"]
    assert again.summary_rows[0]["good_share"] == told["good_share"]
    assert json.loads((tmp_path / "out" / "tune.json").read_text(encoding="utf-8"))["best"]["number"] == best.number


def test_a_figure_shows_cost_and_limits():
    """The answer has a star of its own."""
    found = tune(keys(), {"max_num_seqs": [64], "fleet.replicas": [1, 2]}, ["p99_ttft_ms<=600"], workers=1)
    ax = found.plot()
    labels = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert "the answer" in labels
    assert ax.get_xlabel() == "cost (USD/hour)"
    star = next(line for line in ax.lines if line.get_marker() == "*")
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (found.best.usd_per_hour, pytest.approx(found.best.margin))


def test_in_a_large_group_optuna_proposes_what_is_tried(monkeypatch):
    """Fewer seats than are needed miss the limit by far, so that the proposals move away from them."""
    monkeypatch.setattr(race, "MOST_TRIED", 10)
    monkeypatch.setattr(proposals, "_TRIALS", 10)
    monkeypatch.setattr(proposals, "_AT_ONCE", 5)
    space = {"max_num_seqs": "4:64:16"}
    found = [tune(keys(requests=200), space, ["p99_ttft_ms<=300"], workers=1) for _ in range(2)]
    assert found[0].plain() == found[1].plain()
    assert found[0].best is not None
    assert found[0].fallen["others were proposed"] >= 6


def test_an_answer_that_flips_within_the_published_error_says_so():
    """And so does one that holds, or whose step times have no published error."""
    scenario = keys(requests=200) | {
        "step_time": {"kind": "roofline", "preset": "vllm-h100"},
        "model": "llama-3.1-8b",
        "gpu": "h100-sxm",
    }
    found = tune(scenario, {"tensor_parallel": [1]}, ["mean_tpot_ms<=1000"], workers=1, with_model_error=True)
    best = found.best.label
    assert found.at_errors.share > 0
    assert found.at_errors.line(best).startswith("the answer holds within the published error of the step times")
    none = tune(keys(), {"max_num_seqs": [64]}, ["mean_tpot_ms<=1000"], workers=1, with_model_error=True)
    assert none.at_errors.line(none.best.label).startswith("no published error of the step times")


@pytest.mark.parametrize(
    ("elsewhere", "start", "end"),
    [
        (Elsewhere("late", None, told_apart=True), "the answer flips within", "(5 %): no system if late"),
        (Elsewhere("late", "b", told_apart=True), "the answer flips within", "(5 %): b if late"),
        (Elsewhere("late", "b", told_apart=False), "it is not shown whether", "(5 %): b leads if late"),
        (Elsewhere("late", "b", told_apart=True, stopped="no time"), "it is not shown whether", "no time if late"),
        (Elsewhere("late", "a", told_apart=False, stopped="no time"), "it is not shown whether", "no time if late"),
        (Elsewhere("late", "a", told_apart=False), "the answer holds within", "(5 %)"),
    ],
)
def test_an_answer_flips_only_where_the_two_are_told_apart(elsewhere, start, end):
    """Otherwise another one leads, and it is said that nothing is shown."""
    line = AtErrors(0.05, "", (elsewhere,)).line("a")
    assert line.startswith(start)
    assert line.endswith(end)


def test_the_error_of_comparisons_is_spent_per_test(monkeypatch):
    """A rival that waits while the best one is run on is tested once on the same runs, and again on others."""
    spent = []
    monkeypatch.setattr(contender, "lower_end", lambda _, error: spent.append(error))
    run = SimpleNamespace(
        value=1.0, each=None, run=SimpleNamespace(recording=SimpleNamespace(requests={"arrival_s": 0}))
    )
    question = SimpleNamespace(zone=0.02, random=True)
    one, first, second = (contender.Contender(SimpleNamespace(number=n), question, runs=[run] * 2) for n in range(3))
    first.runs = [run] * 5
    for best in (first, first, second, first):
        assert not contender.not_better(one, best, SimpleNamespace(compared=0.06), gross=0.1)
    assert spent == pytest.approx([0.03, 0.01, 0.005])


def test_errors_of_different_presets_are_off_in_different_directions():
    """What has no preset is not off at all."""
    best, other = ("p on 1 x a",), ("p on 1 x b",)
    ways = [factors for _, factors in model_error._ways({best: 0.1, other: 0.2}, best)]
    assert ways == [{best: 0.9, other: 0.8}, {best: 1.1, other: 1.2}, {best: 1.1, other: 0.8}]
    assert len(list(model_error._ways({best: 0.1}, best))) == 2


@pytest.mark.parametrize(
    ("space", "line"),
    [
        ({"max_num_sequ": [1]}, "space max_num_sequ: unknown key 'max_num_sequ'; did you mean 'max_num_seqs'?"),
        ({"workload.num_requests": [1]}, "space workload.num_requests: workload cannot vary: the traffic"),
        ({"seed": [1, 2]}, "space seed: seed cannot vary"),
        ({"policies.two.max_num_seqs": [1]}, "space policies.two.max_num_seqs: only policy one varies"),
        ({"gpu": ["l40s", "h100-sxm"]}, "space gpu: usd_per_gpu_hour: 2 is the price of one GPU, and several vary"),
        ({}, "--space: give at least one key"),
        ({"max_num_seqs": []}, "space max_num_seqs: has no values"),
    ],
)
def test_wrong_spaces_are_one_line(space, line):
    """Where, what value, what is allowed."""
    with pytest.raises(InputError) as caught:
        tune(keys(), space, ["p99_ttft_ms<=1000"], workers=1)
    assert str(caught.value).startswith(line)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"slo": []}, "--slo: give at least one limit"),
        ({"confidence": 1.0}, "confidence = 1: must be > 0 and < 1"),
        ({"zone": "3"}, "zone = '3': must be a percentage"),
        ({"max_replications": 1}, "max_replications = 1: must be a whole number >= 2"),
        ({"budget_s": -1.0}, "budget_s = -1.0: must be > 0"),
        ({"minimize": "mean_ttft"}, "--metric: unknown metric 'mean_ttft'; did you mean 'mean_ttft_ms'?"),
        ({"minimize": "mean_ttft_ms", "maximize": "output_throughput"}, "minimize and maximize: give one of the two"),
        ({"policy": "two"}, "--policy: unknown policy 'two'; known: one"),
        ({"slo": ["p99_ttft_ms<=100"], "overrides": ["workload.num_requests=50"]}, "runs of 50 requests have no p99"),
    ],
)
def test_wrong_questions_are_one_line(given, line):
    """Where, what value, what is allowed."""
    with pytest.raises(InputError) as caught:
        tune(keys(), {"max_num_seqs": [64]}, **{"slo": ["p99_ttft_ms<=1000"], **given}, workers=1)
    assert str(caught.value).startswith(line)


def test_a_file_can_hold_the_whole_question(tmp_path):
    """Parameters that are given beside it come first."""
    (tmp_path / "scenario.yaml").write_text(json.dumps(keys()), encoding="utf-8")
    task = tmp_path / "task.yaml"
    task.write_text(
        "scenario: scenario.yaml\nset: {max_model_len: 3000}\nspace:\n  fleet.replicas: [1, 2]\n"
        "slo: [p99_ttft_ms<=1]\nconfidence: 0.9\n",
        encoding="utf-8",
    )
    found = tune(task, slo=["p99_ttft_ms<=2000"], workers=1)
    assert (found.confidence, found.best.values) == (0.9, {"fleet.replicas": 1})
    task.write_text("scenario: scenario.yaml\nspace: {seeds: [1]}\nslos: [p99_ttft_ms<=1]\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"task.yaml:3: slos: unknown key 'slos'; did you mean 'slo'\?"):
        tune(task)


def test_the_command_prints_the_answer_and_ends_with_0(tmp_path, command):
    """Also if no system meets the limits: that is an answer."""
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(json.dumps(keys()), encoding="utf-8")
    common = ("tune", scenario, "--space", "fleet.replicas=1,2", "--workers", "1")
    good = command(*common, "--slo", "p99_ttft_ms<=2000")
    assert good.code == 0
    assert "best: fleet.replicas=1 (2.00 USD/h, 1 GPU)" in good.out
    none = command(*common, "--slo", "p99_ttft_ms<=1", "--json")
    assert none.code == 0
    assert json.loads(none.out)["best"] is None
    wrong = command(*common, "--slo", "p99_ttft<=1")
    assert wrong.code == 2
