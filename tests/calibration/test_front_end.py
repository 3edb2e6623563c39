"""A front end, fitted to TTFT of closed loops together with the steps, and used as it was measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simqueue.errors import InputError
from simqueue.experiment import run
from simqueue.scenario import from_mapping
from simqueue.steptime import load_preset

TRUE = {"mfu": 0.55, "step_ms": 1.5, "first_token_ms": 12.0, "first_token_us": 30.0}
SHAPES = [(1, 256, 8), (4, 1024, 16), (8, 256, 32), (8, 2048, 16), (16, 1024, 24)]
"""Clients, prompt and output tokens of each loop."""


def loop(clients: int, prompt: int, output: int, preset: str, **policy: Any) -> dict[str, Any]:
    """Return the scenario of a closed loop of equal requests, ten per client."""
    request = {"arrival_s": 0.0, "prompt_tokens": prompt, "output_tokens": output}
    return {
        "name": "loop",
        "model": "llama-3.1-8b",
        "gpu": "h100-sxm",
        "step_time": {"kind": "roofline", "preset": preset},
        "workload": {"requests": [request] * (10 * clients), "max_concurrency": clients},
        "policies": {"p": {"scheduler": "chunked", "max_num_seqs": 64, "max_num_batched_tokens": 2048} | policy},
    }


def means(scenario: dict[str, Any]) -> tuple[float, float]:
    """Return mean TPOT and TTFT in ms."""
    (row,) = run(scenario).summary_rows
    return row["mean_tpot_ms"], row["mean_ttft_ms"]  # type: ignore[return-value]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the truth as a preset, and means of loops that were simulated with it."""
    folder = tmp_path_factory.mktemp("served")
    kernels = load_preset("vllm-h100-kernels").coefficients.model_dump(exclude_none=True)
    steps = {name: TRUE[name] for name in ("mfu", "step_ms")}
    truth = {"description": "true", "facts": [{"source": "by hand"} | kernels | steps]}
    (folder / "true.yaml").write_text(json.dumps(truth))
    front_end = {name: TRUE[name] for name in ("first_token_ms", "first_token_us")}
    rows = ["concurrency,isl,osl,tpot_ms,ttft_ms"]
    for shape in SHAPES:
        tpot_ms, ttft_ms = means(loop(*shape, str(folder / "true.yaml")) | {"front_end": front_end})
        rows.append(f"{','.join(map(str, shape))},{tpot_ms:.6f},{ttft_ms:.6f}")
    (folder / "served.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def fitted(served: Path) -> Path:
    """Return the preset that ``calibrate`` makes of the means."""
    from simqueue.cli import run_command

    out = served / "mine.yaml"
    told = ["--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--max-num-batched-tokens", "2048"]
    free = ["--base", "vllm-h100-kernels", "--free", ",".join(TRUE)]
    command = ["calibrate", str(served / "served.csv"), "--kind", "served", *told, *free, "--out", str(out), "--quiet"]
    assert run_command(command) == 0
    return out


def test_steps_and_front_end_are_told_apart(fitted: Path) -> None:
    """The fit finds what the loops were simulated with, and its card has the server."""
    card = load_preset(str(fitted)).card
    found = load_preset(str(fitted)).coefficients
    assert found.mfu == pytest.approx(TRUE["mfu"], rel=0.02)
    assert found.step_ms == pytest.approx(TRUE["step_ms"], rel=0.02)
    assert card.front_end is not None
    assert card.front_end.first_token_ms == pytest.approx(TRUE["first_token_ms"], rel=0.05)
    assert card.front_end.first_token_us == pytest.approx(TRUE["first_token_us"], rel=0.05)
    assert card.server is not None
    assert (card.server.max_num_batched_tokens, card.server.max_num_seqs) == (2048, None)
    assert {row.data for row in card.errors} == {"all", "served", "served TTFT"}


def test_as_measured_gives_the_measured_means(served: Path, fitted: Path) -> None:
    """A loop that the fit did not see has the TPOT and TTFT of the truth, with the server of the preset."""
    shape = (6, 700, 20)
    front_end = {name: TRUE[name] for name in ("first_token_ms", "first_token_us")}
    true = means(loop(*shape, str(served / "true.yaml")) | {"front_end": front_end})
    scenario = loop(*shape, str(fitted))
    scenario["step_time"]["server"] = "as measured"
    scenario["policies"] = {"p": {"scheduler": "chunked", "max_num_seqs": 64}}
    assert means(scenario) == pytest.approx(true, rel=0.02)


def resolved(scenario: dict[str, Any]) -> Any:
    """Return the resolved policy of a scenario."""
    return from_mapping(scenario).resolve().policies[0]


MEASURED: dict[str, Any] = {
    "description": "a server",
    "server": {"version": "0.12.0", "max_num_batched_tokens": 1024, "gpu_memory_utilization": 0.8, "max_num_seqs": 99},
    "front_end": {"first_token_ms": 7.0},
    "facts": [{"source": "by hand", "bandwidth_share": 0.8, "mfu": 0.5, "layer_us": 1.0}],
}


@pytest.fixture
def as_measured(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return scenarios whose policy has the server of `MEASURED`, with keys of its own."""
    file = tmp_path / "measured.yaml"
    file.write_text(json.dumps(MEASURED))

    def made(**policy: Any) -> dict[str, Any]:
        scenario = loop(1, 100, 2, str(file))
        scenario["step_time"]["server"] = "as measured"
        return scenario | {"policies": {"p": policy}}

    return made


def test_an_engine_has_the_flags_of_the_server(as_measured: Callable[..., dict[str, Any]]) -> None:
    """Budget, seats, memory share and front end are those of the card, and `validate` says so."""
    scenario = from_mapping(as_measured(engine="vllm", version="0.12.0")).resolve()
    (policy,) = scenario.policies
    flags = {"max_num_batched_tokens": 1024, "max_num_seqs": 99, "gpu_memory_utilization": 0.8}
    assert {flag: policy.engine.values[flag] for flag in flags} == flags  # type: ignore[union-attr]
    assert policy.front_end is not None
    assert policy.front_end.first_token_s == pytest.approx(0.007)
    assert policy.warnings == ()
    for path in ("max_num_seqs", "kv_cache.memory_share", "front_end.first_token_ms"):
        assert scenario.origins[f"policies.p.{path}"] == "preset: as measured"


def test_what_was_written_counts_more(as_measured: Callable[..., dict[str, Any]]) -> None:
    """Keys of the policy stay; the others are the server's. A scheduler gets its memory share as a key."""
    own = {"max_num_seqs": 5, "front_end": None, "kv_cache": {"memory_share": 0.7}}
    kept = resolved(as_measured(scheduler="chunked", **own))
    assert (kept.settings.max_num_seqs, kept.settings.max_num_batched_tokens) == (5, 1024)
    assert kept.front_end is None
    assert kept.kv_cache.rules.memory_share == 0.7
    assert resolved(as_measured(scheduler="chunked")).kv_cache.rules.memory_share == 0.8


def test_another_version_is_told(as_measured: Callable[..., dict[str, Any]]) -> None:
    """The rules of a version that was not measured are no error, but said."""
    (line,) = resolved(as_measured(engine="vllm", version="0.11.0")).warnings
    assert line == "its server was measured at version 0.12.0; the policy has the rules of 0.11.0"


def test_a_preset_without_a_server_is_refused() -> None:
    """The kernels have no server; the error names presets that have one."""
    scenario = loop(1, 100, 2, "vllm-h100-kernels")
    scenario["step_time"]["server"] = "as measured"
    with pytest.raises(InputError, match="'vllm-h100-kernels' does not say what its server was; known of: "):
        resolved(scenario)
