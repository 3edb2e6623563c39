"""The trials of published results run, and their policies and chains do what their pages say."""

import shutil
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simqueue as sq
from simqueue import theory
from simqueue.schedulers import SCHEDULERS

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "studies" / "experiments"
PAGES = ROOT / "reports" / "experiments"
FIGURES = sorted(path.stem for path in SCRIPTS.glob("*.py") if '    main("' in path.read_text("utf-8"))
TRIALS = sorted(path.stem for path in SCRIPTS.glob("*.py") if "\nfrom trials import" in path.read_text("utf-8"))


@pytest.fixture(scope="module", autouse=True)
def _scripts_can_be_imported():
    """Import from the folder of the scripts, and forget their policies afterwards."""
    before = dict(SCHEDULERS)
    sys.path.insert(0, str(SCRIPTS))
    yield
    sys.path.remove(str(SCRIPTS))
    SCHEDULERS.clear()
    SCHEDULERS.update(before)


def listed(arrivals_prompts_outputs):
    """Return the requests of a scenario: (arrival in s, prompt, output)."""
    return [
        {"arrival_s": when, "prompt_tokens": prompt, "output_tokens": output}
        for when, prompt, output in arrivals_prompts_outputs
    ]


def played(requests, blocks, **policy):
    """Run one policy of the scripts with steps of 1 s and blocks of one token."""
    import_module("own_policies")
    limits = {"max_num_seqs": 512, "max_num_batched_tokens": 100_000}
    return sq.run(
        {
            "step_time": {"kind": "constant", "seconds": 1.0},
            "kv_cache": {"block_size": 1, "blocks": blocks},
            "workload": {"requests": requests},
            "policies": {"p": {**limits, **policy}},
        },
        workers=1,
    )


def test_every_script_has_a_small_mode():
    """All but what they share: those that draw a figure, those with a page, and the coverage of intervals."""
    shared = {"drawing", "trials", "own_policies"}
    assert {path.stem for path in SCRIPTS.glob("*.py")} == {*shared, *FIGURES, *TRIALS, "coverage"}


@pytest.mark.parametrize("name", sorted({*FIGURES} - {*TRIALS}))
def test_every_figure_is_drawn(name, monkeypatch, capsys):
    """With few and short runs; what was measured is printed."""
    monkeypatch.setenv("SIMQUEUE_CHECK", "0")
    drawn = import_module(name).measure(True)
    assert all(ax.has_data() for ax in drawn.axes)
    assert capsys.readouterr().out.count("\n") >= 1


def test_a_figure_is_written_where_it_is_asked_for(tmp_path, monkeypatch):
    """``--small --out FOLDER``, as for the trials."""
    drawing = import_module("drawing")
    monkeypatch.setattr(sys, "argv", ["script", "--small", "--out", str(tmp_path / "new")])
    drawing.main("some", lambda small: drawing.figure()[0] if small else None)
    assert (tmp_path / "new" / "some.png").stat().st_size > 1000


def test_coverage_of_intervals_is_printed(monkeypatch, capsys):
    """By Lindley's recursion and by the engine, with one experiment of short runs."""
    coverage = import_module("coverage")
    monkeypatch.setattr(coverage, "CUSTOMERS", 50)
    coverage.measure(True)
    assert capsys.readouterr().out.count("95 % intervals cover") == 2


@pytest.mark.parametrize("name", TRIALS)
def test_every_trial_writes_its_figure_its_page_and_its_section(name, tmp_path, monkeypatch):
    """The section between the marks in README.md is replaced, and nothing else."""
    trials, script = import_module("trials"), import_module(name)
    monkeypatch.setenv("SIMQUEUE_CHECK", "0")  # the runs of the trials are long; the tests below check their policies
    if name != "wait_thresholds":  # to save takes longer than to draw, and is the same for all
        monkeypatch.setattr(trials.canvas, "write", lambda figure, path: path.write_text(str(len(figure.axes))))
    before = (PAGES / "README.md").read_text("utf-8")
    shutil.copy(PAGES / "README.md", tmp_path)
    trials.publish(name, script.measure(True), tmp_path)
    page = (tmp_path / f"{name}.md").read_text("utf-8")
    after = (tmp_path / "README.md").read_text("utf-8")
    begin, end = trials.marks(name)
    assert (tmp_path / f"{name}.png").exists()
    assert page.startswith(f"<!-- made by python studies/experiments/{name}.py")
    assert page.count("**Verdict: ") == after.partition(begin)[2].partition(end)[0].count("**Verdict: ") == 1
    assert (after.partition(begin)[0], after.partition(end)[2]) == (
        before.partition(begin)[0],
        before.partition(end)[2],
    )


@pytest.mark.parametrize("name", TRIALS)
def test_the_section_of_a_trial_has_the_verdict_of_its_page(name):
    """Both come from the same run."""
    begin, end = import_module("trials").marks(name)
    section = (PAGES / "README.md").read_text("utf-8").partition(begin)[2].partition(end)[0]
    verdict = next(line for line in section.splitlines() if line.startswith("**Verdict"))
    assert verdict.removesuffix(f" [Numbers]({name}.md).") in (PAGES / f"{name}.md").read_text("utf-8")


def full_pool(prompt, output, pool, steps):
    """How many run in each step, if an evicted request starts again: arrays of tokens held, oldest first."""
    held, running = [], []
    for _ in range(steps):
        held = [tokens + 1 for tokens in held if tokens < prompt + output - 1]
        evicted = 0
        while sum(held) > pool:
            held.pop()
            evicted += 1
        if not evicted:
            held += [prompt] * ((pool - sum(held)) // prompt)
        running.append(len(held))
    return running


@pytest.mark.parametrize(("prompt", "output", "pool"), [(1, 9, 60), (5, 12, 150), (7, 3, 100)])
def test_restarts_in_a_full_pool_follow_the_model_of_the_page(prompt, output, pool):
    """Step by step, as many requests run as in the model; equal requests, all waiting at time 0."""
    steps = played(listed([(0.0, prompt, output)] * 400), pool, scheduler="restart").steps
    running = np.repeat(steps["running"].to_numpy(), steps["repeat"].to_numpy())[:100]
    assert running.tolist() == full_pool(prompt, output, pool, 100)


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), min_size=1, max_size=8))
def test_the_peak_is_the_largest_sum_of_any_later_step(requests):
    """Each request holds one token more in each step until its last, then none."""
    sys.path.insert(0, str(SCRIPTS))
    lasting = [(held, held + more) for held, more in requests]
    sums = [sum(held + step for held, final in lasting if held + step <= final) for step in range(31)]
    assert import_module("own_policies").peak(lasting) == max(sums)


MANY = listed([(0.37 * i, 3 + i % 7, 1 + (5 * i) % 11) for i in range(150)])


@pytest.mark.parametrize("policy", [{"scheduler": "look-ahead"}, {"scheduler": "wait", "threshold": 2}])
def test_policies_that_never_evict_do_not(policy):
    """WAIT with a threshold of 2 needs at most 2 requests in each stage, each of at most 9 + 11 - 1 tokens."""
    blocks = 60 if policy["scheduler"] == "look-ahead" else 2 * sum(9 + stage for stage in range(11))
    requests = played(MANY, blocks, **policy).requests
    assert (requests["preemptions"] == 0).all()
    assert (requests["status"] == "finished").all()


def test_wait_admits_lots_of_its_threshold():
    """As many prompts in a step as the threshold, or none; fewer only if nothing runs."""
    steps = played(MANY, 1000, scheduler="wait", threshold=4).steps
    fewer = steps[(steps["prefill_seqs"] > 0) & (steps["prefill_seqs"] < 4)]
    assert (steps["prefill_seqs"] <= 4).all()
    assert (steps["prefill_seqs"] == 4).sum() > 10
    assert (fewer["decode_seqs"] == 0).all()


def test_exclusive_batching_never_mixes_and_refills_at_its_threshold():
    """With a backlog, prompts run when 5 of 10 seats are free, and then more than 4 of them."""
    backlog = listed([(0.0, 5, 1 + (7 * i) % 13) for i in range(120)])
    steps = played(backlog, 1000, scheduler="exclusive", max_num_seqs=10, refill=5).steps
    prompts = steps[steps["prefill_seqs"] > 0]
    assert not ((steps["prefill_seqs"] > 0) & (steps["decode_seqs"] > 0)).any()
    assert (prompts[prompts["waiting"] > 0]["prefill_seqs"] >= 5).all()


def test_no_request_joins_a_running_wave():
    """Prompts run only in the first step of a wave, and the rows that finish leave."""
    steps = played(MANY, 1000, scheduler="waves", max_num_seqs=6).steps
    started = (steps["prefill_seqs"] > 0).to_numpy()
    running = steps["running"].to_numpy()
    assert (running[started] == steps["prefill_seqs"][started]).all()
    assert all(
        after <= before for (before, after), begins in zip(pairwise(running), started[1:], strict=True) if not begins
    )


def test_the_bulk_queue_of_equal_lengths_is_that_of_the_theory(monkeypatch):
    """Batches of known duration: `timed_batching`, an independent chain."""
    elastic = import_module("elastic_batching")
    monkeypatch.setattr(elastic, "drawn", lambda _, size: np.full((elastic.DRAWS, size), 100.0))
    seconds = [float(elastic.durations(np.full((1, size), 100.0), False)[0]) for size in range(1, 5)]
    expected = theory.timed_batching(0.8, seconds).mean_wait_s
    assert elastic.bulk_wait_s(0.8, 4) == pytest.approx(expected, rel=1e-6)


def test_short_steps_make_seats_servers(monkeypatch):
    """The probability of waiting beyond a step tends to Erlang's C as steps become short."""
    staffing = import_module("square_root_staffing")
    monkeypatch.setattr(staffing, "OUTPUT", 5000)
    assert staffing.exact(10, 12) == pytest.approx(theory.erlang_c(12, 10), abs=1e-3)
