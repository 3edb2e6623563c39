"""When a step time counts as linear."""

from __future__ import annotations

import pytest

from simqueue.steptime.base import Batch, StepTime
from simqueue.steptime.linear import LinearStepTime
from simqueue.theory.affine import Composition, fit


class Bent(StepTime):
    """Linear in prompt tokens from 200 of them on; fewer take as long as none."""

    def seconds(self, batch: Batch) -> float:
        """Return 10 ms and 10 us for each prompt token above 200."""
        return 0.01 + 1e-5 * max(0, batch.prefill_tokens - 200)


@pytest.mark.parametrize("prompt_tokens", [50, 300])
def test_a_bend_beyond_the_average_step_is_seen(prompt_tokens: int) -> None:
    """An average step has one prompt in a hundred, so its tokens are far below the bend that prompts reach."""
    at = Composition(8, 4000, prompt_tokens / 100, 0.01)
    assert not fit(Bent(), at).exact


def test_a_linear_step_time_is_exact() -> None:
    """The coefficients of a linear step time are its own."""
    found = fit(LinearStepTime(0.01, 2e-5, 0, 1e-4, 3e-8), Composition(8, 4000, 3, 0.01))
    assert found.exact
    coefficients = found.overhead_s, found.per_prompt_token_s, found.per_decode_s, found.per_context_token_s
    assert coefficients == pytest.approx((0.01, 2e-5, 1e-4, 3e-8), rel=1e-6)
