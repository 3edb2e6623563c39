"""Loading a scenario: each mistake is one line with place, value and what is allowed."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from simqueue.datafiles.yamlfile import Document, read
from simqueue.errors import InputError
from simqueue.scenario import Scenario, from_mapping, load
from simqueue.scenario.problems import validated
from simqueue.scenario.written import Written
from simqueue.workload.generate import generate

WriteToy = Callable[..., Path]


def _errors(file: Path, *overrides: str, seed: int | None = None) -> list[str]:
    """Return the lines of the error, each without the folder of the file."""
    with pytest.raises(InputError) as caught:
        load(file, overrides, seed)
    return [line.replace(f"{file.parent}{os.sep}", "") for line in str(caught.value).splitlines()]


def test_valid_scenario(toy: WriteToy) -> None:
    """A valid file becomes a scenario with its values, and defaults for all other keys."""
    scenario = load(toy())
    assert (scenario.name, scenario.seed, scenario.kv_cache.blocks) == ("toy", 3, 49)
    assert scenario.workload.prompt_tokens is not None
    assert (scenario.workload.prompt_tokens.min, scenario.workload.prompt_tokens.max) == (50, 100)
    assert (scenario.horizon_s, scenario.warmup_s, scenario.unservable, scenario.fast) == (None, 0.0, "reject", True)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "scheduler",
            "shedulr",
            "toy.yaml:11: policies.vllm.shedulr: unknown key 'shedulr'; did you mean 'scheduler'?",
        ),
        (
            "max_num_seqs",
            "max_seq",
            "toy.yaml:11: policies.vllm.max_seq: unknown key 'max_seq'; did you mean 'max_num",
        ),
        (
            "output_tokens: {distribution: constant, value: 10}",
            "output: {dist: exponential, mean: 8000, min: 500, max: 1000}",
            "toy.yaml:9: workload.output: unknown key 'output'; did you mean 'output_tokens'? ",
        ),
        (
            "distribution: exponential",
            "dist: exponential",
            "toy.yaml:8: workload.prompt_tokens.distribution: this key is missing (is 'dist' a misspelling of it?)",
        ),
        ("seed: 3", "horizon: 10", "toy.yaml:2: horizon: unknown key 'horizon'; did you mean 'horizon_s'? "),
        ("rate_rps: 5", 'rate_rps: "10"', "toy.yaml:6: workload.arrivals.rate_rps = '10': must be a number > 0, "),
        ("size: 16", "size: 16.5", "toy.yaml:4: kv_cache.block_size = 16.5: must be a whole number >= 1"),
        ("rate_rps", "rate", "toy.yaml:6: workload.arrivals.rate: unknown key 'rate'; did you mean 'rate_rps'? "),
        ("poisson", "poison", "toy.yaml:6: workload.arrivals.process = 'poison': must be poisson, "),
        ("process: poisson, ", "", "toy.yaml:6: workload.arrivals.process: this key is missing; it must be poisson, "),
        (
            "chunked",
            "chunkd",
            "toy.yaml:11: policies.vllm.scheduler = 'chunkd': unknown scheduler 'chunkd'; did you ",
        ),
        ("kind: constant", "kind: constnat", "toy.yaml:3: step_time.kind = 'constnat': must be constant, linear"),
        ("layout: paged", "layout: page", "toy.yaml:4: kv_cache.layout = 'page': must be paged or contiguous; did you"),
        ("blocks: 49", "blocks: 4.5", "toy.yaml:4: kv_cache.blocks = 4.5: must be a whole number"),
        ("blocks: 49", "blocks: all", "toy.yaml:4: kv_cache.blocks = 'all': must be a whole number"),
        ("seed: 3", "seed: true", "toy.yaml:2: seed = true: must be a whole number >= 0"),
        ("seed: 3", "fast: yes", "toy.yaml:2: fast = 'yes': must be true or false"),
        ("seed: 3", "max_model_len: 1e3", "toy.yaml:2: max_model_len = 1000.0: must be a whole number >= 1, written"),
        ("seed: 3", "model: 5", "toy.yaml:2: model = 5: must be a name or a mapping"),
        ("seed: 3", "slo: 5", "toy.yaml:2: slo = 5: must be a mapping"),
        ("seed: 3", "gpu: h100", "toy.yaml:2: gpu = 'h100': unknown gpu 'h100'; did you mean 'h100-pcie' or "),
        ("name: toy", "name: a/b", "toy.yaml:1: name = 'a/b': must be letters, digits, "),
        ("  vllm:", "  my policy:", "toy.yaml:11: policies.my policy: the name of a policy must be letters, "),
        ("value: 10", "value: 0", "toy.yaml:9: workload.output_tokens.value = 0: must be >= 1"),
        ("seed: 3", "zigzag: 1", "toy.yaml:2: zigzag: unknown key 'zigzag'; known: clock_resolution_s"),
        ("seed: 3", "clock_resolution_s: 0.3", "toy.yaml:2: clock_resolution_s = 0.3: must be one second divided by"),
    ],
)
def test_mistakes(toy: WriteToy, old: str, new: str, line: str) -> None:
    """One mistake is one line: file, line, path, value, what is allowed, the nearest name."""
    (found,) = _errors(toy((old, new)))
    assert found.startswith(line)


@pytest.mark.parametrize("bad", ["0", "-1", ".nan", ".inf"])
@pytest.mark.parametrize(
    ("old", "path", "bound"),
    [
        ("rate_rps: 5", "workload.arrivals.rate_rps", "> 0"),
        ("block_size: 16", "kv_cache.block_size", ">= 1"),
        ("max_num_seqs: 8", "policies.vllm.max_num_seqs", ">= 1"),
        ("flops_per_s: 1e15", "gpu.flops_per_s", ">= 1"),
        ("bandwidth_bytes_per_s: 3e12", "gpu.bandwidth_bytes_per_s", ">= 1"),
    ],
)
def test_zero_negative_and_no_number(toy: WriteToy, old: str, path: str, bound: str, bad: str) -> None:
    """Zero, negative, NaN and infinite values are errors with key and allowed range, before anything runs."""
    gpu = ("seed: 3", "gpu: {flops_per_s: 1e15, bandwidth_bytes_per_s: 3e12, memory_mib: 80000}")
    (found,) = _errors(toy(gpu, (old, f"{old.partition(':')[0]}: {bad}")))
    assert f": {path} = {bad}: must be " in found
    assert bound in found


def test_duplicate_key(toy: WriteToy) -> None:
    """A repeated key is an error that shows both lines."""
    (found,) = _errors(toy(("workload:", "seed: 4\nworkload:")))
    assert found == "toy.yaml:5: the key 'seed' occurs twice (first in line 2); keep one of them"


def test_all_mistakes_are_told_in_the_order_of_the_file(toy: WriteToy) -> None:
    """Several mistakes give several lines, also beside an unknown key."""
    found = _errors(
        toy(
            ("seed: 3", "sede: 3"),
            ("block_size: 16", "block_size: 0"),
            ("rate_rps: 5", "rate_rps: -5, burst: 2"),
            ("max_num_seqs: 8", "max_num_seq: 8, chunk_tokens: 0"),
        )
    )
    assert [line.partition(": ")[0] for line in found] == [f"toy.yaml:{n}" for n in (2, 4, 6, 6, 11, 11)]
    for line, path in zip(
        found,
        [
            *("sede", "kv_cache.block_size", "workload.arrivals.rate_rps", "workload.arrivals.burst"),
            *("policies.vllm.max_num_seq", "policies.vllm.chunk_tokens"),
        ],
        strict=True,
    ):
        assert f": {path}" in line


def test_misspelt_required_key_is_one_mistake(toy: WriteToy) -> None:
    """A misspelt key is reported once, and not also as a missing key."""
    (found,) = _errors(toy(("step_time", "step_tiem")))
    assert "did you mean 'step_time'?" in found


def test_blocks_auto_needs_hardware(toy: WriteToy) -> None:
    """A pool cannot be sized without model and GPU; the error says what to give."""
    (found,) = _errors(toy((", blocks: 49", "")))
    assert found == (
        "toy.yaml:4: kv_cache.blocks: 'auto' needs 'model' and 'gpu'; otherwise give a whole number of blocks"
    )


def test_step_time_is_needed_without_hardware(toy: WriteToy) -> None:
    """Without model and GPU there is no default step time."""
    (found,) = _errors(toy(("step_time: {kind: constant, seconds: 0.01}\n", "")))
    assert "step_time: this key is missing; give step_time, or 'model' and 'gpu' for the roofline" in found


def test_model_that_does_not_fit(toy: WriteToy) -> None:
    """A model that is larger than the GPU is an error on loading, with both sizes."""
    (found,) = _errors(toy(("seed: 3", "model: llama-3.1-405b\ngpu: h100-sxm")))
    assert found.startswith("toy.yaml:2: model = 'llama-3.1-405b': ")
    assert "weights 812 GB" in found


def test_mistake_in_shared_keys_is_told_once(toy: WriteToy) -> None:
    """A wrong value in the scenario's kv_cache is not reported again for the policies that inherit it."""
    changes = (("block_size: 16", "block_size: 0"), ("max_num_seqs: 8", "kv_cache: {blocks: 7}"))
    (found,) = _errors(toy(*changes))
    assert found.startswith("toy.yaml:4: kv_cache.block_size = 0: ")


def test_flag_beats_file_beats_default(toy: WriteToy) -> None:
    """The file sets the horizon, a flag overrides it, and without both there is none."""
    file = toy(("seed: 3", "horizon_s: 10"))
    assert load(file).horizon_s == 10
    assert load(file, ["horizon_s=20"]).horizon_s == 20
    assert load(file, ["horizon_s=null"]).horizon_s is None
    assert load(toy()).horizon_s is None


def test_seed_flag(toy: WriteToy) -> None:
    """--seed overrides the file's seed; an invalid seed is an error that names the flag."""
    assert load(toy(), seed=9).seed == 9
    assert _errors(toy(), seed=-1) == ["--seed -1: seed = -1: must be >= 0"]


@pytest.mark.parametrize(
    ("flag", "line"),
    [
        ("workload.arrivals.rate_rps=-1", "--set workload.arrivals.rate_rps=-1: must be > 0"),
        ("workload.arrivals.rat=1", "--set workload.arrivals.rat=1: unknown key 'rat'; did you mean 'rate_rps'? "),
        ("kv_cache={blocks: 9, block_size: 0}", "--set kv_cache={blocks: 9, block_size: 0}: kv_cache.block_size = 0: "),
        ("step_time.kind=roofline", "--set step_time.kind=roofline: "),
        ("new.key=1", "--set new.key=1: new: unknown key 'new'; "),
    ],
)
def test_mistake_in_a_flag_names_the_flag(toy: WriteToy, flag: str, line: str) -> None:
    """A wrong value of a flag is reported with the flag instead of a line of the file."""
    assert _errors(toy(), flag)[0].startswith(line)


def test_flag_that_breaks_a_line_of_the_file(toy: WriteToy) -> None:
    """If a flag and a line of the file break a rule together, the error names both."""
    (found,) = _errors(toy(), "policies.vllm.max_num_seqs=9000")
    assert found.startswith("toy.yaml:11: policies.vllm.max_num_batched_tokens = 8192: must be at least")
    assert found.endswith("(with --set policies.vllm.max_num_seqs=9000)")


def test_relative_paths_start_at_the_file(toy: WriteToy) -> None:
    """Relative paths start at the folder of the file."""
    file = toy()
    assert load(file).base_dir == file.parent


@pytest.mark.parametrize(("stem", "name"), [("my-run.v2", "my-run.v2"), ("my run (2)", "my-run-2-"), ("_x", "x")])
def test_name_defaults_to_that_of_the_file(toy: WriteToy, stem: str, name: str) -> None:
    """The name defaults to that of the file, with '-' for characters that are not allowed."""
    file = toy(("name: toy\n", ""))
    assert load(file.rename(file.with_name(f"{stem}.yaml"))).name == name


def test_from_mapping_reports_paths_without_lines() -> None:
    """Keys given in Python are validated in the same way; errors have a path and no line."""
    data = {
        "step_time": {"kind": "constant", "seconds": 0},
        "kv_cache": {"blocks": 9},
        "workload": {"requests": [{"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 0}]},
        "policies": {"p": {"scheduler": "static"}},
    }
    with pytest.raises(InputError) as caught:
        from_mapping(data)
    assert str(caught.value).splitlines() == [
        "step_time.seconds = 0: must be > 0",
        "workload.requests.0.output_tokens = 0: must be >= 1",
    ]
    scenario = from_mapping(data, ["step_time.seconds=1", "workload.requests.0.output_tokens=2"], seed=5)
    assert isinstance(scenario, Scenario)
    assert scenario.seed == 5


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield (*path, key)
        yield from _paths(below, (*path, key))


def test_whatever_stands_anywhere_is_a_scenario_or_a_line(toy: WriteToy) -> None:
    """Any value at any path gives a scenario, or errors that name the flag or a place in the file."""
    file = toy(("max_num_seqs: 8", "max_num_seqs: 8, kv_cache: {block_size: 32}, gpu: h100-sxm"))
    odd = ["null", "true", "0", "-1", "1e308", "1" + 400 * "0", ".nan", "''", "x", "'10'", "[]", "{}", "[{}]", "{x: 1}"]
    for path in _paths(read(file).data):
        for value in odd:
            flag = f"{'.'.join(map(str, path))}={value}"
            complaint = _complaint(file, flag)
            lines = complaint.splitlines()
            assert [line for line in lines if not line.startswith(("--set ", f"{file}:"))] == [], flag
            assert "Input should" not in complaint, flag


def _complaint(file: Path, flag: str) -> str:
    try:
        load(file, [flag])
    except InputError as error:
        return str(error)
    return ""


def test_lengths_keep_their_bounds(toy: WriteToy) -> None:
    """min and max bound an exponential distribution, although its mean is far above them."""
    scenario = load(toy(("num_requests: 10", "num_requests: 500")))
    requests = generate(scenario.workload, seed=scenario.seed, base_dir=scenario.base_dir).requests
    assert len(requests) == 500
    assert min(r.prompt_tokens for r in requests) == 50
    assert max(r.prompt_tokens for r in requests) == 100


def test_scenarios_are_frozen(toy: WriteToy) -> None:
    """A scenario cannot be changed after it was validated."""
    with pytest.raises(ValueError, match="frozen"):
        load(toy()).seed = 4  # type: ignore[misc]  # the point of the test


def test_relative_paths_start_where_the_scenario_was_loaded(
    toy: WriteToy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scenario reads the files of its folder, or of the folder it was made in, after the current folder has changed.

    A worker process that was started in another folder has that as its current folder.
    """
    file, there = toy(), tmp_path / "there"
    there.mkdir()
    monkeypatch.chdir(tmp_path)
    data = read(file).data
    made = (load(file.name), from_mapping(data), from_mapping(data, base_dir="there/.."), Scenario.model_validate(data))
    monkeypatch.chdir(there)
    for scenario in made:
        assert scenario.base_dir.is_absolute()
        assert scenario.resolve().base_dir.resolve() == tmp_path.resolve()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda _: {1: 2}, "the key 1 must be text"),
        (lambda data: {**data, None: 2}, "the key null must be text"),
        (lambda data: {**data, "policies": {True: {"scheduler": "static"}}}, "policies: the key true must be text"),
        (lambda data: {**data, "policies": {"a": {"scheduler": "static", 3: 4}}}, "policies.a: the key 3 must be text"),
        (
            lambda data: {**data, "workload": {"requests": [{(1, 2): 0}]}},
            "workload.requests.0: the key (1, 2) must be text",
        ),
    ],
)
def test_keys_in_python_are_text(toy: WriteToy, change: Callable[[dict[str, Any]], dict[Any, Any]], line: str) -> None:
    """A key of another type is an error in one line, at any depth."""
    with pytest.raises(InputError) as caught:
        from_mapping(change(read(toy()).data))
    assert str(caught.value) == line


def test_a_key_that_cannot_be_taken_out_does_not_stop_the_report() -> None:
    """Validation ends although the key 1 is looked for as '1', which is not there."""
    data: dict[Any, Any] = {1: 2}
    with pytest.raises(InputError, match="unknown key '1'"):
        validated(Scenario, Written(Document("", data)))
