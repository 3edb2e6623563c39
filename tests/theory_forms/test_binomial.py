"""The binomial distribution against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from simqueue.theory.binomial import binomial_pmf


@pytest.mark.parametrize("n", [1, 2, 37, 300])
@pytest.mark.parametrize("p", [0.0, 2**-20, 0.25, 0.5, 0.875, 1.0])
def test_it_is_the_exact_one(n: int, p: float) -> None:
    """Every probability is the rational number rounded, to a relative 1e-12; those of floats near 0 aside."""
    exact = Fraction(p)
    wanted = [float(comb(n, k) * exact**k * (1 - exact) ** (n - k)) for k in range(n + 1)]
    np.testing.assert_allclose(binomial_pmf(n, p), wanted, rtol=1e-12, atol=1e-280)


def test_no_trials() -> None:
    """Without trials there are no successes."""
    assert binomial_pmf(0, 0.3).tolist() == [1.0]
