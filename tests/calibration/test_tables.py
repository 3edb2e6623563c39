"""Tables of measurements that users bring: what is read, and which rows are named as bad."""

from pathlib import Path

import pytest

from simqueue.calibration import Fit, StepCase, fit
from simqueue.calibration.choice import free_for, given_by, held_fixed
from simqueue.calibration.closed_loop import make_policy
from simqueue.calibration.request_log import fit_log
from simqueue.calibration.rows import Target, read_steps
from simqueue.calibration.served_rows import LoggedRequest, Server, read_log, read_means
from simqueue.errors import InputError
from simqueue.hardware import load_gpu, load_model
from simqueue.kvcache import PagedKVCache
from simqueue.request import Request
from simqueue.simulation import RunOptions, Simulation
from simqueue.steptime import Batch, load_preset
from simqueue.steptime.calibrated import CalibratedStepTime

TARGET = Target(load_model("llama-3.1-8b", Path()), load_gpu("h100-sxm", Path()))
HEADER = "ms,decode_seqs,context_tokens,prefill_seqs,prefill_tokens,past_tokens\n"


def write(folder: Path, text: str) -> Path:
    """Write a table."""
    file = folder / "own.csv"
    file.write_text(text)
    return file


def test_rows_become_batches(tmp_path: Path) -> None:
    """A row's mean context is summed over its decodes, its prompt tokens are divided over its prompts."""
    file = write(tmp_path, HEADER + "20,8,1000.5,,,\n60,0,,3,1000,512\n80,4,100,1,1500,\n")
    cases, bad = read_steps(file, TARGET)
    assert bad == []
    assert [case.batch for case in cases] == [
        Batch(8, 8, 8004, (), 8),
        Batch(prefill=((512, 334), (512, 333), (512, 333)), sampled_rows=3),
        Batch(4, 4, 400, ((0, 1500),), 5),
    ]
    assert [case.measured_s for case in cases] == [0.020, 0.060, 0.080]
    assert [case.phase for case in cases] == ["decode", "prefill", "mixed"]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("x,8,100,,,", "ms 'x' is not a number"),
        ("-1,8,100,,,", "ms '-1' is not a finite number above 0"),
        ("0,8,100,,,", "ms '0' is not a finite number above 0"),
        ("nan,8,100,,,", "ms 'nan' is not a finite number above 0"),
        ("20,8.5,100,,,", "decode_seqs '8.5' is not an integer of at least 0"),
        ("20,,,,,", "the step is empty: neither decode_seqs nor prefill_tokens"),
        ("20,8,,,,", "decodes need context_tokens of at least 1"),
        ("20,,,8,4,", "4 prompt tokens are fewer than 8 prompts"),
        ("2,8,100,,,", "2 ms is faster than the peaks of h100-sxm allow, 4.51"),
        ("900,512,8192,,,", "550 GB of keys and values do not fit the 69.5 GB beside the weights"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, row: str, why: str) -> None:
    """A row that is not a measurement, or physically impossible, is left out with its place and the reason."""
    cases, bad = read_steps(write(tmp_path, HEADER + "20,8,100,,,\n" + row + "\n"), TARGET)
    assert len(cases) == 1
    assert len(bad) == 1
    assert bad[0].startswith("own.csv:3: ")
    assert why in bad[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("milliseconds\n1\n", "unknown column 'milliseconds'"),
        ("decode_seq,ms\n1,2\n", "unknown column 'decode_seq'; did you mean 'decode_seqs'"),
        ("decode_seqs\n1\n", "column 'ms' is missing"),
    ],
)
def test_other_columns_are_rejected(tmp_path: Path, text: str, said: str) -> None:
    """An unknown column, or a missing one, is an error with the names."""
    with pytest.raises(InputError, match=said):
        read_steps(write(tmp_path, text), TARGET)
    with pytest.raises(InputError, match="no such file"):
        read_steps(tmp_path / "nowhere.csv", TARGET)


def test_what_is_fitted_follows_the_rows(tmp_path: Path) -> None:
    """Decodes do not determine prompt terms, one GPU no link; served means determine three values."""
    decodes, _ = read_steps(write(tmp_path, HEADER + "20,8,100,,,\n"), TARGET)
    assert free_for(decodes, None) == ["bandwidth_share", "kv_bandwidth_share", "layer_us", "seq_us"]
    assert free_for([], None) == ["mfu", "seq_us", "step_ms"]
    assert free_for(decodes, ["mfu"]) == ["mfu"]


def test_rates_of_experts_are_fitted_where_none_were_measured() -> None:
    """On an L4, steps of a mixture of experts determine the rates of its experts; on an H100 these are measured."""
    model, rates = load_model("qwen3-30b-a3b", Path()), ["expert_bandwidth_share", "expert_mfu", "expert_layer_us"]
    for gpu, expected in (("l4", rates), ("h100-sxm", [])):
        steps = [StepCase("", model, load_gpu(gpu, Path()), 1, Batch(8, 8, 800, (), 8), 0.02)]
        assert [name for name in free_for(steps, None) if "expert" in name] == expected


def test_a_base_preset_gives_what_is_not_fitted() -> None:
    """Values that are not fitted are those of the base preset, and the written preset says so."""
    base = load_preset("vllm-h100-kernels").coefficients
    fixed = held_fixed("vllm-h100-kernels", ["mfu"])
    assert "mfu" not in fixed
    assert fixed["layer_us"] == base.layer_us
    found = Fit(base, ("mfu",), {}, {}, predicted_s=None)  # type: ignore[arg-type] # not looked at
    given = given_by("vllm-h100-kernels", found)
    assert given["layer_us"] == (base.layer_us, "preset vllm-h100-kernels")
    assert "mfu" not in given


def test_served_means_give_their_step_cost_back(tmp_path: Path) -> None:
    """A fit to TPOT by concurrency, made with known values, recovers time per step, time per sequence and MFU."""
    base = load_preset("vllm-h100-kernels").coefficients
    truth = base.model_copy(update={"mfu": 0.5, "seq_us": 40.0, "step_ms": 2.0})
    prices = CalibratedStepTime.of(TARGET.model, TARGET.gpu, 1, truth)
    header, rows = "concurrency,isl,osl,tpot_ms\n", [(2, 512, 64), (8, 512, 64), (32, 512, 128), (64, 2048, 64)]
    blank = write(tmp_path, header + "".join(f"{c},{i},{o},1\n" for c, i, o in rows))
    tpot_ms = [
        1e3 * sum(w * prices.seconds(b) for b, w in zip(case.batches, case.weights, strict=True))
        for case in read_means(blank, TARGET, Server())[0]
    ]
    file = write(tmp_path, header + "".join(f"{c},{i},{o},{t}\n" for (c, i, o), t in zip(rows, tpot_ms, strict=True)))
    cases, ttft, bad = read_means(file, TARGET, Server())
    assert (ttft, bad) == ([], [])
    free = free_for([], None)
    found = fit(cases, free, held_fixed("vllm-h100-kernels", free))
    for name in free:
        assert getattr(found.coefficients, name) == pytest.approx(getattr(truth, name), rel=0.02)


def test_bad_served_rows_are_named(tmp_path: Path) -> None:
    """A mean that is not a positive number, or an output of one token, is listed with its line."""
    file = write(tmp_path, "concurrency,isl,osl,tpot_ms\n4,100,1,10\n4,100,20,-3\n4,x,20,3\n4,100,20,10\n")
    cases, _, bad = read_means(file, TARGET, Server())
    assert len(cases) == 1
    assert bad == [
        "own.csv:2: an output of one token has no TPOT",
        "own.csv:3: tpot_ms '-3' is not a finite number above 0",
        "own.csv:4: isl 'x' is not a number",
    ]


def test_a_request_log_gives_its_step_cost_back() -> None:
    """A fit to the log of a run with known values recovers the time per step, although it changes which steps run."""
    base = load_preset("vllm-h100-kernels").coefficients
    truth = base.model_copy(update={"step_ms": 3.0})
    requests = [Request(f"r{i}", 0.05 * i, 300 + 17 * i % 700, 40 + i % 50) for i in range(90)]
    policy = make_policy("chunked", {"max_num_seqs": 256}, PagedKVCache(20_000, 16))
    prices = CalibratedStepTime.of(TARGET.model, TARGET.gpu, 1, truth)
    columns = Simulation(requests, policy, prices, RunOptions()).run().requests
    log = [
        LoggedRequest(request.arrival_s, request.prompt_tokens, request.output_tokens, float(tpot_s))
        for request, tpot_s in zip(
            requests,
            (columns["last_token_s"] - columns["first_token_s"]) / (columns["output_tokens"] - 1),
            strict=True,
        )
    ]
    found, cases = fit_log(
        log, ["step_ms"], held_fixed("vllm-h100-kernels", ["step_ms"]), TARGET, Server(blocks=20_000)
    )
    assert found.coefficients.step_ms == pytest.approx(3.0, rel=0.02)
    assert len(cases) == 30


def test_a_log_is_read_in_order_of_arrival(tmp_path: Path) -> None:
    """Rows are sorted by arrival, outputs of one token have no TPOT, and bad rows are listed."""
    text = "arrival_s,prompt_tokens,output_tokens,tpot_ms\n2,100,50,20\n1,200,1,\n3,0,5,1\n4,10,5,\n"
    log, bad = read_log(write(tmp_path, text))
    assert log == [LoggedRequest(1.0, 200, 1, None), LoggedRequest(2.0, 100, 50, 0.02)]
    assert bad == [
        "own.csv:4: prompt_tokens '0' is not a finite number of at least 1",
        "own.csv:5: tpot_ms '' is not a number",
    ]
