"""What the `step_time` key takes and what it rejects."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from simqueue.errors import InputError
from simqueue.hardware import load_gpu, load_model
from simqueue.steptime import Batch, RooflineSettings, StepTimeSettings, preset_names, preset_rows
from simqueue.steptime.build import build
from simqueue.steptime.linear import ConstantStepTime, LinearStepTime
from simqueue.steptime.roofline import RooflineStepTime

H100 = load_gpu("h100-sxm", Path())
LLAMA_8B = load_model("llama-3.1-8b", Path())


def parse(keys: dict[str, Any]) -> Any:
    """Read a `step_time` mapping as a scenario does."""
    return TypeAdapter(StepTimeSettings).validate_python(keys)


def test_kind_decides() -> None:
    """Each kind gives its own model, and only the roofline needs a model and a GPU."""
    assert isinstance(build(parse({"kind": "constant", "seconds": 0.01})), ConstantStepTime)
    assert isinstance(build(parse({"kind": "linear", "overhead_s": 0.01})), LinearStepTime)
    assert isinstance(build(parse({"kind": "roofline"}), LLAMA_8B, H100), RooflineStepTime)


@pytest.mark.parametrize(
    ("model", "gpu", "missing"), [(None, None, "model and gpu"), (LLAMA_8B, None, "gpu"), (None, H100, "model")]
)
def test_roofline_says_what_it_lacks(model: Any, gpu: Any, missing: str) -> None:
    """A roofline without a model or a GPU is an input error that names what is missing."""
    with pytest.raises(InputError, match=f"^step_time: kind roofline needs {missing};"):
        build(parse({"kind": "roofline"}), model, gpu, 1)


BAD = [0, -1, float("nan"), float("inf"), "0.01"]


@pytest.mark.parametrize(
    ("keys", "key"),
    [({"kind": "constant"}, "seconds"), ({"kind": "roofline"}, "bandwidth_share"), ({"kind": "roofline"}, "mfu")],
)
@pytest.mark.parametrize("bad", BAD)
def test_impossible_values_are_rejected(keys: dict[str, Any], key: str, bad: object) -> None:
    """Zero, negative, NaN, infinite and non-numeric durations and shares are rejected, naming the key (case 49)."""
    with pytest.raises(ValidationError) as caught:
        parse({**keys, key: bad})
    assert [error["loc"][-1] for error in caught.value.errors()] == [key]


@pytest.mark.parametrize("bad", BAD[1:])
@pytest.mark.parametrize(
    "key", ["overhead_s", "per_prefill_token_s", "decode_base_s", "per_decode_s", "per_context_token_s"]
)
def test_linear_rejects_impossible_values(key: str, bad: object) -> None:
    """Negative, NaN, infinite and non-numeric coefficients are rejected, naming the key (case 49)."""
    with pytest.raises(ValidationError) as caught:
        parse({"kind": "linear", "overhead_s": 0.01, key: bad})
    assert [error["loc"][-1] for error in caught.value.errors()] == [key]


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"per_prefill_token_s": 1e-5},
        {"per_decode_s": 1e-3},
        {"decode_base_s": 1e-3, "per_context_token_s": 1e-6},
        {"per_prefill_token_s": 1e-5, "per_context_token_s": 1e-6},
    ],
)
def test_linear_rejects_steps_without_time(keys: dict[str, Any]) -> None:
    """Coefficients with which a step would take no time are rejected; the error says what is needed."""
    with pytest.raises(ValidationError, match="a step could take no time: overhead_s must be positive, or both"):
        parse({"kind": "linear", **keys})


@pytest.mark.parametrize(
    "keys",
    [
        {"overhead_s": 1e-3},
        {"per_prefill_token_s": 1e-5, "per_decode_s": 1e-3},
        {"per_prefill_token_s": 1e-5, "decode_base_s": 1e-3},
    ],
)
def test_every_accepted_linear_step_takes_time(keys: dict[str, Any]) -> None:
    """With accepted coefficients, the smallest prefill and the smallest decode take time."""
    model = build(parse({"kind": "linear", **keys}))
    assert model.seconds(Batch(prefill=((0, 1),))) > 0
    assert model.seconds(Batch(1, 1, 1, (), 1)) > 0


def test_unknown_kinds_and_keys_are_rejected() -> None:
    """The error for an unknown kind lists the known kinds, that for an unknown key has the nearest key."""
    with pytest.raises(ValidationError, match="'constant', 'linear', 'roofline', 'table'"):
        parse({"kind": "magic"})
    with pytest.raises(ValidationError, match="did you mean 'seconds'"):
        parse({"kind": "constant", "second": 1.0})


def test_presets() -> None:
    """The ideal preset is full bandwidth and 70 % MFU; given shares override it; unknown names are rejected."""
    assert {"ideal", "vllm-h100", "vllm-h100-kernels", "trtllm-h100"} < set(preset_names())
    rows = {row["name"]: row for row in preset_rows()}
    assert (rows["ideal"]["bandwidth_share"], rows["ideal"]["mfu"]) == (1.0, 0.7)
    assert parse({"kind": "roofline", "preset": "ideal"}).shares() == (1.0, 0.7)
    assert RooflineSettings(mfu=0.5).resolved() == RooflineSettings(preset="ideal", bandwidth_share=1.0, mfu=0.5)
    with pytest.raises(ValidationError, match=r"unknown preset 'idael'; did you mean 'ideal'\?"):
        RooflineSettings(preset="idael")
