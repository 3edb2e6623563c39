"""The oracle of the tests against published values, and against the exact chain where both apply."""

from __future__ import annotations

import pytest

from simqueue.theory.bulk import slotted_continuous

from .oracles import affine_steps


@pytest.mark.parametrize(
    ("rate", "slots", "output", "prompt", "a", "b", "c", "expected"),
    [
        (6, 8, 10, 0, 0.06, 0.004, 0, (0.09507461, 0.17183903, 0.89790799, 0.08067433, 0.98886193, 4.8712567)),
        (5, 8, 20, 500, 0.02, 0.001, 5e-5, (0.01670068, 0.06765396, 0.58437753, 0.02719598, 0.92139557, 3.0805273)),
    ],
)
def test_affine_steps_have_the_published_means(
    rate: float, slots: int, output: float, prompt: int, a: float, b: float, c: float, expected: tuple[float, ...]
) -> None:
    """Wait, TTFT, E2EL, ITL, busy share and mean batch to all digits that are published."""
    found = affine_steps(rate, slots, output, prompt, a, b, c, most=100)
    values = (found.wait_s, found.ttft_s, found.e2el_s, found.itl_s, found.busy, found.batch)
    assert values == pytest.approx(expected, abs=6e-8)


def test_two_chains_agree_on_constant_steps() -> None:
    """With b = c = 0 the oracle and the theory module's own chain, written apart, give the same wait."""
    expected = slotted_continuous(4, 8, 10, 0.1)
    found = affine_steps(4, 8, 10, 0, 0.1, 0, 0, most=100)
    assert (found.wait_s, found.busy) == pytest.approx((expected.mean_wait_s, expected.busy_share), abs=1e-9)
