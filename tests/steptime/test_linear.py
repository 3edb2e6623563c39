"""The affine model against deterministic cases of queueing theory."""

import copy
import pickle

import pytest
from pydantic import ValidationError

from simqueue.steptime import Batch, LinearSettings, StepTime
from simqueue.steptime.build import build
from simqueue.steptime.linear import ConstantStepTime, LinearStepTime


@pytest.fixture
def model() -> StepTime:
    """20 ms per step, 50 us per prompt token, 1 ms per decode."""
    return build(LinearSettings(overhead_s=0.02, per_decode_s=0.001, per_prefill_token_s=5e-5))


def decodes(n: int) -> Batch:
    """Return a step of `n` decodes at a context of 500."""
    return Batch(n, n, n * 500, (), n)


def test_one_request_alone(model: StepTime) -> None:
    """D/D/1 with P=500, O=10: TTFT 45 ms, ITL 21 ms, E2E 234 ms."""
    prefill_s = model.seconds(Batch(prefill=((0, 500),), sampled_rows=1))
    assert prefill_s == pytest.approx(0.045, rel=1e-12)
    assert model.seconds(decodes(1)) == pytest.approx(0.021, rel=1e-12)
    assert model.ends(prefill_s, decodes(1), 9)[-1] == pytest.approx(0.234, rel=1e-12)


def test_waves_of_eight(model: StepTime) -> None:
    """Twenty requests at once on eight seats, P=500, O=10: waves of 0.472, 0.472 and 0.336 s, makespan 1.28 s."""
    waves = []
    for n in (8, 8, 4):
        prefill_s = model.seconds(Batch(prefill=((0, 500),) * n, sampled_rows=n))
        waves.append(model.ends(prefill_s, decodes(n), 9)[-1])
    assert waves == pytest.approx([0.472, 0.472, 0.336], rel=1e-12)
    assert sum(waves) == pytest.approx(1.28, rel=1e-12)


@pytest.mark.parametrize("chunk", [64, 128, 500, 512])
def test_chunked_prefill_alone(model: StepTime, chunk: int) -> None:
    """A prompt of 500 alone in chunks of C takes a * ceil(P/C) + c * P."""
    pieces = [(past, min(chunk, 500 - past)) for past in range(0, 500, chunk)]
    total = sum(model.seconds(Batch(prefill=(piece,))) for piece in pieces)
    assert total == pytest.approx(0.02 * -(-500 // chunk) + 5e-5 * 500, rel=1e-12)


def test_decode_base_and_context() -> None:
    """The decode base is added once, and only with decodes; context is counted by the token."""
    model = build(
        LinearSettings(
            overhead_s=2e-4, per_prefill_token_s=2e-5, decode_base_s=4e-4, per_decode_s=3e-5, per_context_token_s=1e-7
        )
    )
    assert model.seconds(Batch(prefill=((0, 100),))) == pytest.approx(2e-4 + 2e-3, rel=1e-12)
    mixed = Batch(8, 8, 8000, ((0, 100), (50, 20)), 10)
    assert model.seconds(mixed) == pytest.approx(2e-4 + 120 * 2e-5 + 4e-4 + 8 * 3e-5 + 8000 * 1e-7, rel=1e-12)


@pytest.mark.parametrize(
    ("keys", "takes_time"),
    [
        ("overhead_s", True),
        ("per_prefill_token_s decode_base_s", True),
        ("per_prefill_token_s per_decode_s", True),
        ("per_prefill_token_s", False),
        ("per_prefill_token_s per_context_token_s", False),
        ("decode_base_s per_decode_s per_context_token_s", False),
        ("", False),
    ],
)
def test_every_step_takes_time(keys: str, takes_time: bool) -> None:
    """Without an overhead both prompts and decodes must cost something, however little."""
    given = dict.fromkeys(keys.split(), 1e-6)
    if takes_time:
        assert LinearSettings.model_validate(given).model_dump(include=set(given)) == given
    else:
        with pytest.raises(ValidationError, match="a step could take no time"):
            LinearSettings.model_validate(given)


def test_single_step_ends_after_its_seconds(model: StepTime) -> None:
    """A step of prompts, of decodes or of both ends its own duration after its start."""
    for batch in (Batch(prefill=((0, 300), (0, 200))), decodes(3), Batch(3, 3, 1500, ((0, 300),), 4)):
        assert model.ends(2.0, batch, 1) == [2.0 + model.seconds(batch)]


@pytest.mark.parametrize("made", [ConstantStepTime(0.01), LinearStepTime(0.02, 5e-5, 1e-3, 1e-4, 1e-7)])
def test_copies_are_equal(made: StepTime) -> None:
    """Models are sent to other processes and copied, and are the same model there."""
    for back in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):  # noqa: S301 - ours
        assert back == made
