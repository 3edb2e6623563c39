"""Closed forms of one server against published reference values."""

from __future__ import annotations

import math

import pytest

from simqueue.errors import InputError
from simqueue.theory import single_server as queue


@pytest.mark.parametrize(
    ("load", "inside", "waiting", "sojourn", "wait", "t50", "t90", "t99", "w90", "w99"),
    [
        (0.5, 1, 0.5, 2, 1, 1.386294, 4.605170, 9.210340, 3.218876, 7.824046),
        (0.8, 4, 3.2, 5, 4, 3.465736, 11.512925, 23.025851, 10.397208, 21.910133),
        (0.9, 9, 8.1, 10, 9, 6.931472, 23.025851, 46.051702, 21.972246, 44.998097),
        (0.95, 19, 18.05, 20, 19, 13.862944, 46.051702, 92.103404, 45.025836, 91.077538),
    ],
)
def test_mm1(
    load: float,
    inside: float,
    waiting: float,
    sojourn: float,
    wait: float,
    t50: float,
    t90: float,
    t99: float,
    w90: float,
    w99: float,
) -> None:
    """M/M/1 has the textbook's means and quantiles."""
    found = queue.mm1(load, 1)
    assert (found.mean_in_system, found.mean_waiting) == pytest.approx((inside, waiting))
    assert (found.mean_sojourn_s, found.mean_wait_s) == pytest.approx((sojourn, wait))
    sojourns = [queue.mm1_sojourn_quantile(load, 1, p) for p in (0.5, 0.9, 0.99)]
    assert sojourns == pytest.approx([t50, t90, t99], abs=5e-7)
    assert [queue.mm1_wait_quantile(load, 1, p) for p in (0.9, 0.99)] == pytest.approx([w90, w99], abs=5e-7)


@pytest.mark.parametrize(
    ("load", "wait", "sojourn", "inside", "sd", "within_1", "p50", "p90", "p99"),
    [
        (0.5, 0.5, 1.5, 0.75, 0.763763, 0.824361, 0, 1.515745, 3.336256),
        (0.8, 2, 3, 2.4, 2.309401, 0.445108, 1.275940, 5.011511, 10.355887),
        (0.9, 4.5, 5.5, 4.95, 4.821825, 0.245960, 3.013048, 10.782505, 21.898237),
        (0.95, 9.5, 10.5, 9.975, 9.827682, 0.129285, 6.480668, 22.302229, 44.937766),
    ],
)
def test_md1(
    load: float,
    wait: float,
    sojourn: float,
    inside: float,
    sd: float,
    within_1: float,
    p50: float,
    p90: float,
    p99: float,
) -> None:
    """M/D/1 has the known mean, spread and distribution of the wait."""
    found = queue.md1(load, 1)
    assert (found.mean_wait_s, found.mean_sojourn_s, found.mean_in_system) == pytest.approx((wait, sojourn, inside))
    assert math.sqrt(queue.mg1_wait_variance(load, 1, 1, 1)) == pytest.approx(sd, abs=5e-7)
    assert queue.md1_wait_cdf(load, 1, 1) == pytest.approx(within_1, abs=5e-7)
    quantiles = [queue.md1_wait_quantile(load, 1, p) for p in (0.5, 0.9, 0.99)]
    assert quantiles == pytest.approx([p50, p90, p99], abs=5e-7)


@pytest.mark.parametrize("load", [0.3, 0.8])
@pytest.mark.parametrize("t", [0.0, 0.4, 1.7, 3.0, 4.2])
def test_the_wait_in_md1_follows_erlangs_series(load: float, t: float) -> None:
    """For small t the alternating series of Erlang still has its digits, and agrees."""
    terms = (math.exp(load * (t - k)) * (-load * (t - k)) ** k / math.factorial(k) for k in range(math.floor(t) + 1))
    assert queue.md1_wait_cdf(load, 1, t) == pytest.approx((1 - load) * math.fsum(terms), rel=1e-10)


@pytest.mark.parametrize(
    ("second", "third", "wait_5", "sd_5", "wait_8", "sd_8"),
    [
        (2, 6, 1, 1.732051, 4, 4.898979),
        (1.5, 3, 0.75, 1.25, 3, 3.605551),
        (4 / 3, 2, 0.666667, 1.054093, 2.666667, 3.126944),
        (3.25, 16.75, 1.625, 2.867744, 6.5, 8.036376),
        (5, 60, 2.5, 5.123475, 10, 13.416408),
        (5, 125, 2.5, 6.922187, 10, 16.329932),
    ],
)
def test_pollaczek_khinchine(
    second: float, third: float, wait_5: float, sd_5: float, wait_8: float, sd_8: float
) -> None:
    """For six service distributions of mean 1, mean and variance of the wait follow from their moments."""
    waits = [queue.mg1(load, 1, second).mean_wait_s for load in (0.5, 0.8)]
    spreads = [math.sqrt(queue.mg1_wait_variance(load, 1, second, third)) for load in (0.5, 0.8)]
    assert waits == pytest.approx([wait_5, wait_8], abs=5e-7)
    assert spreads == pytest.approx([sd_5, sd_8], abs=5e-7)


def test_the_bound_is_one_and_the_approximation_is_not() -> None:
    """For gamma gaps of shape 1/4 at a load of 0.8 the true wait lies between the approximation and the bound."""
    true_wait = 10.955228
    assert queue.kingman_approximation(0.8, 1, 4, 1) == pytest.approx(10.0)
    assert queue.kingman_bound(0.8, 1, 4 / 0.8**2, 1) == pytest.approx(14.5)
    assert queue.kingman_approximation(0.8, 1, 4, 1) < true_wait < queue.kingman_bound(0.8, 1, 4 / 0.8**2, 1)


@pytest.mark.parametrize("bad", [(1.0, 1.0), (0.0, 1.0), (-1.0, 1.0), (math.nan, 1.0), (0.5, math.inf)])
def test_what_has_no_steady_state_is_refused(bad: tuple[float, float]) -> None:
    """A load of 1, a rate of 0 and numbers that are none are errors, not results."""
    with pytest.raises(InputError):
        queue.mm1(*bad)
