"""The values that each policy runs with, and the origin of every value."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import Field

from simqueue.errors import InputError
from simqueue.hardware import GpuSettings, kv_pool_blocks
from simqueue.kvcache.settings import KVCacheSettings
from simqueue.scenario import Scenario, from_mapping, load
from simqueue.schedulers import SCHEDULERS, Chunked
from simqueue.settings import Settings
from simqueue.steptime import ConstantSettings, RooflineSettings
from simqueue.steptime.linear import LinearStepTime
from simqueue.steptime.roofline import RooflineStepTime

WriteToy = Callable[..., Path]
OWN = "max_num_seqs: 8, max_model_len: 99, kv_cache: {block_size: 32}, step_time: {kind: linear, overhead_s: 1}"


def test_own_key_beats_scenario_beats_default(toy: WriteToy) -> None:
    """The policy's key overrides the scenario's, which overrides the default."""
    file = toy(("seed: 3", "max_model_len: 500"), ("max_num_seqs: 8", OWN + "}\n  plain: {scheduler: static"))
    scenario = load(file)
    own, plain = scenario.resolve().policy("vllm"), scenario.resolve().policy("plain")
    assert (own.longest_request_tokens, plain.longest_request_tokens) == (99, 500)
    assert (own.tensor_parallel, plain.tensor_parallel) == (1, 1)
    assert (own.scheduler, plain.scheduler) == ("chunked", "static")


def test_kv_cache_is_merged_and_step_time_is_replaced(toy: WriteToy) -> None:
    """A policy's kv_cache is merged with the scenario's; its step_time replaces the scenario's."""
    scenario = load(toy(("max_num_seqs: 8", OWN)))
    own = scenario.resolve().policy("vllm")
    assert (own.kv_cache.rules.block_size, own.kv_cache.blocks) == (32, 49)
    assert own.step_time == LinearStepTime(1.0, 0.0, 0.0, 0.0, 0.0)
    assert scenario.kv_cache.block_size == 16
    assert isinstance(scenario.step_time, ConstantSettings)


def test_flag_beats_the_policy(toy: WriteToy) -> None:
    """A flag for the scenario's key overrides the policy's own value of that key."""
    own = load(toy(("max_num_seqs: 8", OWN)), ["max_model_len=7", "kv_cache.block_size=64"]).resolve().policy("vllm")
    assert own.longest_request_tokens == 7
    assert (own.kv_cache.rules.block_size, own.kv_cache.blocks) == (64, 49)


def test_null_of_a_policy_counts(toy: WriteToy) -> None:
    """null in a policy means no limit, although the scenario has one."""
    file = toy(("seed: 3", "max_model_len: 500"), ("max_num_seqs: 8", "max_model_len: null"))
    assert load(file).resolve().policy("vllm").longest_request_tokens is None


def test_roofline_is_the_default_with_hardware(toy: WriteToy) -> None:
    """With a model and a GPU the step time is the ideal roofline, and the pool is sized from memory."""
    file = toy(
        ("step_time: {kind: constant, seconds: 0.01}", "model: llama-3.1-8b\ngpu: h100-sxm"), (", blocks: 49", "")
    )
    policy = load(file).resolve().policy("vllm")
    assert isinstance(policy.step_time, RooflineStepTime)
    assert policy.model is not None
    assert policy.gpu is not None
    assert (policy.model.name, policy.gpu.name) == ("llama-3.1-8b", "h100-sxm")
    assert policy.kv_cache.blocks == kv_pool_blocks(policy.gpu, policy.model, 1, 0.9, 16)


def test_scheduler_settings_are_the_schedulers_own(toy: WriteToy) -> None:
    """A scheduler gets its own settings, without the keys that every policy can have."""
    policy = load(toy(("max_num_seqs: 8", OWN))).resolve().policy("vllm")
    assert type(policy.settings) is Chunked.Settings
    assert policy.settings == Chunked.Settings(max_num_seqs=8)


def test_unknown_policy(toy: WriteToy) -> None:
    """An unknown policy is an error with the nearest name and all names."""
    with pytest.raises(InputError, match="unknown policy 'vlm'; did you mean 'vllm'"):
        load(toy()).resolve().policy("vlm")


def test_origins(toy: WriteToy) -> None:
    """The origin of a value is the file, the policy, a flag, or the default."""
    file = toy(("max_num_seqs: 8", OWN))
    origin = load(file, ["workload.num_requests=5", "policies.vllm.order=priority"], seed=8).resolve().origins
    expected = {
        "name": "file",
        "seed": "--seed",
        "horizon_s": "default",
        "workload.num_requests": "--set",
        "workload.arrivals.rate_rps": "file",
        "workload.prompt_tokens.bounds": "default",
        "kv_cache.block_size": "file",
        "policies.vllm.max_num_seqs": "file",
        "policies.vllm.order": "--set",
        "policies.vllm.chunk_tokens": "default",
        "policies.vllm.max_model_len": "policy",
        "policies.vllm.kv_cache.block_size": "policy",
        "policies.vllm.kv_cache.blocks": "file",
        "policies.vllm.kv_cache.watermark": "default",
        "policies.vllm.step_time.overhead_s": "policy",
        "policies.vllm.step_time.per_decode_s": "default",
        "policies.vllm.tensor_parallel": "default",
    }
    assert {path: origin[path] for path in expected} == expected


def test_every_value_has_an_origin(toy: WriteToy) -> None:
    """Every value of the resolved scenario has an origin, and every origin has a value."""
    resolved = load(toy(("max_num_seqs: 8", OWN))).resolve()
    values, origin = resolved.values, resolved.origins

    def leaves(value: object, path: str) -> Iterator[str]:
        if isinstance(value, dict) and value:
            for key, inner in value.items():
                yield from leaves(inner, f"{path}.{key}" if path else key)
        else:
            yield path

    assert sorted(origin) == sorted(leaves(values, ""))


def test_resolved_scenario_resolves_to_itself(toy: WriteToy) -> None:
    """The resolved values are JSON, and they are a scenario that resolves to the same values."""
    values = json.loads(json.dumps(load(toy(("max_num_seqs: 8", OWN))).resolve().values, allow_nan=False))
    again = from_mapping(values).resolve().values
    assert again == values


def test_scenarios_made_in_python() -> None:
    """Models can be given instead of mappings; the origin of their values is `given`."""
    scenario = from_mapping(
        {
            "model": "llama-3.1-8b",
            "gpu": GpuSettings(memory_mib=80_000, bandwidth_bytes_per_s=3e12, flops_per_s=1e15),
            "step_time": RooflineSettings(mfu=0.5),
            "kv_cache": KVCacheSettings(block_size=32),
            "workload": {"requests": [{"arrival_s": 0, "prompt_tokens": 1, "output_tokens": 1, "class": "chat"}]},
            "policies": {"p": {"scheduler": "chunked", "kv_cache": KVCacheSettings(blocks=7)}},
        }
    )
    policy = scenario.resolve().policy("p")
    assert (policy.kv_cache.rules.block_size, policy.kv_cache.blocks) == (32, 7)
    assert policy.gpu is not None
    assert policy.gpu.memory_bytes == 80_000 * 2**20
    resolved = scenario.resolve()
    values = resolved.values
    assert values["workload"]["requests"][0]["class"] == "chat"
    assert resolved.origins["kv_cache.block_size"] == "given"
    assert resolved.origins["policies.p.kv_cache.blocks"] == "policy"
    assert Scenario.model_validate(scenario) is scenario


class TwiceSettings(Settings):
    """Keys of a scheduler that a user could write."""

    twice: int = Field(2, ge=1)


class Twice(Chunked):
    """A scheduler that a user could write."""

    Settings: ClassVar[type[Settings]] = TwiceSettings  # type: ignore[assignment]  # its keys are its own
    summary: ClassVar[str] = "for this test"


def test_schedulers_of_ones_own(toy: WriteToy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newly registered scheduler is known by name, with its own keys only."""
    monkeypatch.setitem(SCHEDULERS, "twice", Twice)
    policy = load(toy(("chunked, max_num_seqs: 8", "twice, twice: 3"))).resolve().policy("vllm")
    assert policy.settings == TwiceSettings(twice=3)
    with pytest.raises(
        InputError, match=r"policies\.vllm\.max_num_seqs: unknown key .*; known: fleet, front_end, .*, twice"
    ):
        load(toy(("chunked", "twice")))
