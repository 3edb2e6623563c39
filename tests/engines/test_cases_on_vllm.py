"""Public bug reports restated as small scenarios, on vLLM's own scheduler (synchronous unless said otherwise)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from simqueue.cli import run_command
from simqueue.errors import InputError


def ms(seconds: float) -> Any:
    """Return milliseconds to compare with: sums of steps agree to 1e-9."""
    return pytest.approx(1000 * seconds, rel=1e-9)


def said(name: str, arrival_s: float, prompt: list[list[int]], output_tokens: int, stream: int = 99) -> dict[str, Any]:
    """Return a request whose tokens are named."""
    return {
        "id": name,
        "arrival_s": arrival_s,
        "prompt_tokens": sum(length for _, _, length in prompt),
        "prompt": prompt,
        "output_tokens": output_tokens,
        "output_stream": stream,
    }


# -- prefix cache ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
def test_case_11_recomputation_after_preemption_is_no_cache_hit(
    is_async: bool, toy: Any, play: Any, summary_of: Any
) -> None:
    """A hundred prompts without a common token have no hits; hits after a preemption are counted separately.

    Origin: vllm-project/vllm#25780, where random prompts had a "hit rate" of 30 %.
    """
    asked = [(f"r{i}", 0.0, 64, 64) for i in range(100)]
    summary = summary_of(play(toy(asked, blocks=12, async_scheduling=is_async)))
    assert summary["completed"] == 100
    assert summary["preemptions"] > 0
    assert summary["prefix_hit_rate"] == 0
    assert summary["prefix_queried_tokens"] == 6400
    assert summary["self_hit_tokens"] > 0


@pytest.mark.parametrize(("caching", "recomputed"), [(True, 5), (False, 14)])
def test_what_a_preempted_request_finds_again_is_not_computed_again(
    caching: bool, recomputed: int, toy: Any, play: Any, summary_of: Any
) -> None:
    """Two requests of 10 + 10 tokens need 38; on 28 blocks of one token the second loses 14 and finds 9 of them."""
    scenario = toy([(name, 0.0, 10, 10) for name in "ab"], blocks=28, enable_prefix_caching=caching)
    scenario["kv_cache"]["block_size"] = 1
    result = play(scenario)
    steps, summary = result.steps, summary_of(result)
    computed = (steps["decode_seqs"] * steps["repeat"]).sum() + steps["prefill_tokens"].sum()
    assert (summary["recomputed_tokens"], summary["preemptions"]) == (recomputed, 1)
    assert computed == 2 * (10 + 10 - 1) + recomputed
    assert summary["self_hit_tokens"] == (9 if caching else None)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("blocks", [12, 15, 20])
def test_tokens_computed_are_those_needed_less_first_hits_and_those_computed_again(
    is_async: bool, blocks: int, toy: Any, play: Any
) -> None:
    """Whatever is shared and preempted: tokens computed = P + O - 1 - hits of the first admission + recomputed."""
    asked = [said(f"r{i}", 0.01 * i, [[0, 0, 32], [i + 1, 0, 24]], 40, stream=100 + i) for i in range(12)]
    result = play(toy(asked, blocks=blocks, async_scheduling=is_async))
    requests, steps = result.requests, result.steps
    assert requests["preemptions"].sum() > 0
    assert requests["cached_tokens"].sum() > 0
    needed = (requests["prompt_tokens"] + requests["output_tokens"] - 1 - requests["cached_tokens"]).sum()
    computed = (steps["decode_seqs"] * steps["repeat"]).sum() + steps["prefill_tokens"].sum()
    assert computed == needed + requests["recomputed_tokens"].sum()


@pytest.mark.parametrize("is_async", [False, True])
def test_case_12_a_fully_cached_prompt_computes_its_last_block(is_async: bool, toy: Any, play: Any, by_id: Any) -> None:
    """A prompt of four cached blocks hits three and computes 16 tokens; with 16 more tokens it hits all four.

    Origin: vllm-project/vllm#9972, #11186, where nothing was left to schedule.
    """
    prompt = [[1, 0, 64]]
    asked = [said("R1", 0.0, prompt, 4), said("R2", 1.0, prompt, 4), said("R3", 2.0, [*prompt, [2, 0, 16]], 4, 98)]
    result = play(toy(asked, async_scheduling=is_async))
    requests = by_id(result)
    assert requests["cached_tokens"].to_dict() == {"R1": 0, "R2": 48, "R3": 64}
    assert requests["ttft_ms"].to_dict() == {name: ms(0.01) for name in ("R1", "R2", "R3")}
    computed = result.steps[result.steps["prefill_tokens"] > 0]["prefill_tokens"].tolist()
    assert computed == [64, 16, 16]


def test_case_15_chunks_do_not_count_a_prompt_twice(toy: Any, play: Any, by_id: Any, summary_of: Any) -> None:
    """A prompt in three chunks is looked up once: 192 tokens asked for, 96 found.

    Origin: casys-kaist/LLMServingSim#49, vllm-project/vllm#43736.
    """
    asked = [said("R1", 0.0, [[1, 0, 96]], 1), said("R2", 1.0, [[1, 0, 96], [2, 0, 96]], 1)]
    result = play(toy(asked, max_num_batched_tokens=32, max_num_seqs=32))
    summary = summary_of(result)
    assert by_id(result)["cached_tokens"].to_dict() == {"R1": 0, "R2": 96}
    assert summary["prefix_queried_tokens"] == 96 + 192
    assert summary["prefix_hit_rate"] == pytest.approx(96 / 288, rel=1e-12)
    assert result.steps["prefill_tokens"].tolist() == [32] * 6


def test_case_15_retries_do_not_count_a_prompt_twice(toy: Any, play: Any, by_id: Any, summary_of: Any) -> None:
    """A request that waits more than fifty steps for blocks is counted once, at its admission (same reports)."""
    asked = [
        said("R1", 0.0, [[1, 0, 96]], 1),
        said("H", 0.5, [[3, 0, 160]], 51, 97),  # 10 blocks of 20, then up to 14
        said("R2", 0.505, [[1, 0, 96], [2, 0, 96]], 1),  # 12 blocks, 6 of them cached
    ]
    result = play(toy(asked, blocks=20, max_num_batched_tokens=256))
    requests, summary = by_id(result), summary_of(result)
    assert requests.loc["R2", "queue_ms"] >= 500
    assert requests["cached_tokens"].to_dict() == {"R1": 0, "H": 0, "R2": 96}
    assert summary["prefix_queried_tokens"] == 96 + 160 + 192
    assert summary["prefix_hit_rate"] == pytest.approx(96 / 448, rel=1e-12)


def test_case_31_hash_ids_that_do_not_cover_the_prompt_are_rejected(toy: Any, play: Any, tmp_path: Path) -> None:
    """A row with 20 tokens and two blocks of 512 is an error that names the row.

    Origin: guidellm#948, ai-dynamo/aiperf#581, ai-dynamo/dynamo#8998, kvcache-ai/Mooncake#1266.
    """
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"timestamp": 0, "input_length": 20, "output_length": 8, "hash_ids": [0, 1]}\n')
    scenario = {**toy([]), "workload": {"trace": {"format": "mooncake", "path": str(trace), "block_tokens": 512}}}
    with pytest.raises(InputError, match=r"trace\.jsonl.*1.*needs 1 hash_ids, the row has 2"):
        play(scenario)


@pytest.mark.parametrize(("block_size", "blocks"), [(16, 32), (64, 8)])
def test_case_31_the_traces_block_is_not_the_engines(
    block_size: int, blocks: int, toy: Any, play: Any, by_id: Any, tmp_path: Path
) -> None:
    """Two prompts with one common id of 512 tokens share 512 tokens, whatever the engine's own block (same reports)."""
    rows = [{"timestamp": 1000 * i, "input_length": 700, "output_length": 8, "hash_ids": [0, 1 + i]} for i in range(2)]
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scenario = {**toy([]), "workload": {"trace": {"format": "mooncake", "path": str(trace), "block_tokens": 512}}}
    scenario["kv_cache"] |= {"block_size": block_size}
    cached = by_id(play(scenario))["cached_tokens"].tolist()
    assert cached == [0, 512]
    assert cached[1] == blocks * block_size


# -- liveness, pool and preemption -----------------------------------------------------------------------------------


def test_case_1_what_can_never_fit_is_rejected(toy: Any, play: Any, by_id: Any, summary_of: Any) -> None:
    """A request of 66 blocks is rejected with a pool of 49; the other requests run as without it."""
    asked = [("big", 0.0, 1002, 50), ("s1", 0.0, 6, 50), ("s2", 0.05, 6, 50)]
    result = play(toy(asked, blocks=49))
    requests = by_id(result)
    assert requests.loc["big", "reject_reason"] == "prompt 1002 + output 50 needs 66 blocks, the pool has 49"
    for name in ("s1", "s2"):
        assert (requests.loc[name, "ttft_ms"], requests.loc[name, "e2el_ms"]) == (ms(0.01), ms(0.5))
    assert summary_of(result)["duration_s"] == pytest.approx(0.55, rel=1e-9)


def test_case_1_as_the_real_engine_has_it_everybody_waits(toy: Any, play: Any, by_id: Any) -> None:
    """With `unservable: wait` a request that never fits blocks all requests after it, and a warning says so."""
    asked = [("big", 0.0, 1002, 50), ("s1", 0.0, 6, 50)]
    result = play({**toy(asked, blocks=49), "unservable": "wait"})
    assert by_id(result)["status"].tolist() == ["unfinished", "unfinished"]
    assert any("big, s1" in line for line in result.warnings)


# without a check for the whole prompt and with nothing cached, as in the restated report
BARE = {"scheduler_reserve_full_isl": False, "enable_prefix_caching": False}


def test_case_3_requests_that_fit_only_one_by_one_all_finish(toy: Any, play: Any, by_id: Any) -> None:
    """Ten requests of eight blocks in a pool of twelve: 471 steps and the preemptions of an independent reference."""
    result = play(toy([(f"r{i}", 0.0, 64, 64) for i in range(10)], blocks=12, **BARE))
    assert by_id(result)["preemptions"].tolist() == [0, 1, 2, 1, 1, 1, 1, 1, 1, 1]
    assert result.steps["repeat"].sum() == 471
    assert by_id(result)["finish_s"].max() == pytest.approx(4.71, rel=1e-9)


def test_case_5_and_45_a_preempted_request_keeps_what_its_client_saw(
    toy: Any, play: Any, by_id: Any, summary_of: Any
) -> None:
    """TTFT is the time of the first token, a wait is one long gap, and n tokens have n - 1 gaps."""
    result = play(toy([("A", 0.0, 16, 40), ("B", 0.0, 32, 40)], blocks=5, **BARE))
    requests, summary = by_id(result), summary_of(result)
    assert requests["preemptions"].to_dict() == {"A": 0, "B": 1}
    assert requests["e2el_ms"].to_dict() == {"A": ms(0.40), "B": ms(0.63)}
    assert requests["max_itl_ms"].to_dict() == {"A": ms(0.01), "B": ms(0.24)}
    assert requests.loc["B", "ttft_ms"] == ms(0.01)
    assert requests.loc["B", "tpot_ms"] == ms(0.62 / 39)
    assert (summary["itl_count"], summary["median_itl_ms"]) == (78, ms(0.01))


def test_case_8_a_prompt_too_long_for_the_model_leaves_a_result(toy: Any, play: Any, summary_of: Any) -> None:
    """Nothing completes: counts are right, latencies are undefined, and a warning says so."""
    result = play({**toy([("r", 0.0, 65_536, 10)]), "max_model_len": 38_544})
    summary = summary_of(result)
    assert (summary["completed"], summary["rejected"], summary["mean_ttft_ms"]) == (0, 1, None)
    assert any("none of 1 requests finished" in line for line in result.warnings)


# -- scheduling and metrics ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "threshold", "short_s", "long_s"),
    [("0.33.0", 0, 0.165, 0.16), ("0.28.0", 256, 0.015, 0.32), ("0.33.0", 256, 0.015, 0.17)],
)
def test_case_18_the_threshold_lets_short_prompts_pass(
    version: str, threshold: int, short_s: float, long_s: float, toy: Any, play: Any, by_id: Any
) -> None:
    """A threshold of 256 tokens saves the short prompt 150 ms; from 0.31 a long prompt alone is not limited.

    Origin: vllm-project/vllm#10774, #14003, #57413, #21674.
    """
    asked = [("long", 0.0, 8192, 2), ("short", 0.005, 32, 2)]
    flags = {"version": version, "max_num_batched_tokens": 512, "long_prefill_token_threshold": threshold}
    requests = by_id(play(toy(asked, **flags)))
    assert (requests.loc["short", "ttft_ms"], requests.loc["long", "ttft_ms"]) == (ms(short_s), ms(long_s))


STEADY_PROMPTS = [("dec", 0.0, 16, 100)] + [(f"p{i}", 0.005 + 0.01 * i, 512, 1) for i in range(100)]


@pytest.mark.parametrize(("version", "gap_s", "last_s"), [("0.33.0", 0.01, 0.025), ("0.6.3", 1.01, 0.015)])
def test_case_19_v1_never_starves_decodes_and_v0_does(
    version: str, gap_s: float, last_s: float, toy: Any, play: Any, by_id: Any
) -> None:
    """With steady prompts a decode waits 1.01 s in V0; V1 mixes prompts and decodes, with 10 ms more TTFT.

    Origin: sgl-project/sglang#32549, ROCm/ATOM#1835.
    """
    scenario = toy(STEADY_PROMPTS, version=version, max_num_batched_tokens=512)
    if version == "0.6.3":
        del scenario["policies"]["vllm"]["async_scheduling"]
    requests = by_id(play(scenario))
    assert (requests.loc["dec", "max_itl_ms"], requests.loc["p99", "ttft_ms"]) == (ms(gap_s), ms(last_s))


def test_case_37_one_token_has_no_tpot(toy: Any, play: Any, by_id: Any, summary_of: Any) -> None:
    """An output of one token is left out of the mean TPOT and counted as left out."""
    result = play(toy([("a", 0.0, 100, 1), ("b", 0.0, 100, 11)]))
    assert by_id(result)["tpot_ms"].isna().to_dict() == {"a": True, "b": False}
    assert (summary_of(result)["mean_tpot_ms"], summary_of(result)["tpot_excluded"]) == (ms(0.01), 1)


@pytest.mark.parametrize("is_async", [False, True])
def test_case_40_what_is_inside_at_the_horizon_is_in_the_table(is_async: bool, toy: Any, play: Any, by_id: Any) -> None:
    """Of five requests on one seat two finish, the second exactly at the horizon; no request is lost.

    Planned ahead it is the same: with one seat there is nothing to plan beside the last step of a request.
    """
    scenario = toy([(f"r{i}", i / 10, 10, 50) for i in range(5)], max_num_seqs=1, async_scheduling=is_async)
    scenario |= {"step_time": {"kind": "constant", "seconds": 2**-7}, "horizon_s": 0.78125}
    requests = by_id(play(scenario))
    assert requests["status"].tolist() == ["finished"] * 2 + ["unfinished"] * 3
    assert requests["finish_s"].tolist()[:2] == [0.390625, 0.78125]


def test_case_52_the_same_seed_gives_the_same_bytes_in_any_process(toy: Any, tmp_path: Path) -> None:
    """Preemption, prefix cache and priorities do not depend on the hash seed of the process.

    Origin: inference-sim/inference-sim#323, #768, asonnino/mysticeti#260.
    """
    scenario = {
        **toy([], blocks=12),
        "seed": 7,
        "workload": {
            "arrivals": {"process": "poisson", "rate_rps": 40},
            "prompt_tokens": {"distribution": "constant", "value": 64},
            "output_tokens": {"distribution": "constant", "value": 64},
            "num_requests": 30,
        },
    }
    scenario["policies"]["async"] = scenario["policies"]["vllm"] | {"async_scheduling": True}
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(scenario), encoding="utf-8")
    command = [sys.executable, "-m", "simqueue", "run", str(file), "--json", "--workers", "1"]
    shown = [
        subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("0", "1")
    ]
    assert shown[0] == shown[1]
    assert json.loads(shown[0])["summary"][0]["preemptions"] > 0


def test_an_engine_runs_from_the_command_line(toy: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`simqueue run` runs an engine and exits with 0; the printed scenario has its resolved flags."""
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(toy([("a", 0.0, 100, 11)])), encoding="utf-8")
    assert run_command(["run", str(file), "--json"]) == 0
    policy = json.loads(capsys.readouterr().out)["scenario"]["policies"]["vllm"]
    assert policy["scheduler_reserve_full_isl"] is True
    assert policy["gpu_memory_utilization"] == 0.92
    assert policy["kv_cache"]["prefix_caching"] is True
