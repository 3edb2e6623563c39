"""The test of a mean against theory: how often it raises a false alarm, and how often it finds an error."""

import numpy as np
import pytest
from scipy import stats

from simqueue.errors import InputError
from simqueue.experiment.verification import AGREES, CASES, DIFFERS, judge
from simqueue.statistics.power import mean_test

ROWS = 28


def test_the_detectable_error_is_found_as_often_as_it_says() -> None:
    """A difference of the detectable size is beyond the tolerated one with probability 0.9, of none with 0.01."""
    n, rng = 12, np.random.default_rng(1)
    found = mean_test(np.arange(n, dtype=float).tolist(), significance=0.01, power=0.9)
    error = np.arange(n).std(ddof=1) / n**0.5
    t = stats.t.ppf(0.995, n - 1)
    assert found.tolerated == pytest.approx(t * error)
    shift = found.detectable / error
    assert stats.nct.sf(t, n - 1, shift) == pytest.approx(0.9, abs=1e-6)
    drawn = rng.normal(shift / n**0.5, 1, (20_000, n))  # in standard deviations
    beyond = np.abs(drawn.mean(1)) / (drawn.std(1, ddof=1) / n**0.5) > t
    assert beyond.mean() == pytest.approx(0.9, abs=0.01)


def test_a_single_value_cannot_be_tested() -> None:
    """One replication has no spread."""
    with pytest.raises(InputError, match="at least 2 replications; there are 1"):
        mean_test([1.0], significance=0.05, power=0.9)


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_planted_errors_of_skewed_means_are_found(share: float) -> None:
    """Of gamma-distributed means that can detect 5 %, a planted 5 % is found in 85 %; without one, 1 % differ."""
    rng = np.random.default_rng(3)
    tries, shape = 1000, 25  # a skewness of 2 / sqrt(25) = 0.4, a spread of 20 %
    found = [
        judge((rng.gamma(shape, 4.0, 800) * (1 + share)).reshape(40, 20).mean(1).tolist(), 100, rows=ROWS)
        for _ in range(tries)
    ]
    assert np.mean([detectable for detectable, _ in found]) == pytest.approx(0.033, rel=0.05)
    wrong = sum(verdict == DIFFERS for _, verdict in found) / tries
    assert wrong >= 0.85 if share else wrong <= 0.01
    if not share:
        assert {verdict for _, verdict in found} <= {AGREES, DIFFERS}


def test_the_cases_have_one_policy_each() -> None:
    """A built-in case is one scenario with one policy, so that its name says what is tested."""
    assert all(len(case["policies"]) == 1 for case in CASES.values())
