"""The binomial distribution, without the libraries that hold many others: they take longer to load than a small run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def binomial_pmf(n: int, p: float) -> NDArray[np.float64]:
    """Return the probabilities of 0 to `n` successes in `n` trials that succeed with probability `p`.

    Parameters
    ----------
    n : int
        At least 0.
    p : float
        From 0 to 1.
    """
    k = np.arange(n + 1)
    if p <= 0 or p >= 1:
        return np.asarray(k == (n if p >= 1 else 0), dtype=np.float64)
    ratios = (n - k[1:] + 1) / k[1:]  # of successive binomial coefficients
    coefficients = np.concatenate(([0.0], np.cumsum(np.log(ratios))))
    return np.asarray(np.exp(coefficients + k * np.log(p) + (n - k) * np.log1p(-p)))
