"""Rare waits by splitting against exact tails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import simqueue as sq
from simqueue.errors import InputError
from simqueue.experiment.rare import _Queue
from simqueue.statistics.splitting import sample
from simqueue.theory import gamma_m1_root, md1_decay, md1_wait_cdf
from simqueue.workload.arrivals.renewal import PoissonArrivals
from simqueue.workload.durations import LognormalDuration

POISSON = {"process": "poisson", "rate_rps": 0.8}
DECAY = md1_decay(0.8, 1)
EXPONENTIAL = {"distribution": "exponential", "mean_s": 1.0}


def test_a_wait_beyond_60_s_of_mm1_at_a_fiftieth_of_the_effort() -> None:
    """P(W > 60) = 0.8 exp(-12) = 4.9e-6, within 30 %, from 50 times fewer customers than a plain run needs."""
    exact = 0.8 * math.exp(-0.2 * 60)
    found = sq.rare.tail(POISSON, EXPONENTIAL, 60, paths=200, repetitions=10, seed=1)
    assert found.probability == pytest.approx(exact, rel=0.3)
    assert found.low is not None
    assert found.high is not None
    assert found.low < exact < found.high
    assert found.crude_customers is not None
    assert found.crude_customers > 50 * found.customers
    assert found.levels_s == tuple(sorted(found.levels_s))
    assert found.levels_s[-1] == 60


def test_the_effort_of_a_plain_simulation_is_what_it_would_need() -> None:
    """For a level that is not rare, the estimated effort is that of cycles: customers beyond t per cycle, squared."""
    found = sq.rare.tail(POISSON, EXPONENTIAL, 2.0, paths=400, repetitions=20, seed=2)
    rng = np.random.default_rng(3)
    counts = []
    for _ in range(2500):  # cycles, one by one
        work, beyond = 0.0, 0
        while True:
            beyond += work > 2
            work += rng.exponential(1) - rng.exponential(1.25)
            if work <= 0:
                break
        counts.append(beyond)
    assert found.high is not None
    assert found.low is not None
    error = (found.high - found.low) / 2 / 2.093  # the t-value of 20 repetitions
    plain = float(np.mean(np.square(counts))) / 5 / error**2  # a cycle of M/M/1 at 0.8 has 5 customers
    assert found.crude_customers == pytest.approx(plain, rel=0.3)


@pytest.mark.parametrize(
    ("arrivals", "service", "beyond_s", "exact"),
    [
        (
            {"process": "gamma", "rate_rps": 0.6, "burstiness": 0.25},
            EXPONENTIAL,
            12.0,
            gamma_m1_root(0.6, 1, 0.25) * math.exp(-(1 - gamma_m1_root(0.6, 1, 0.25)) * 12),
        ),
        (POISSON, 1.0, 20.0, DECAY.factor * math.exp(-DECAY.decay_per_s * 20)),
        ({"process": "constant", "rate_rps": 0.5}, EXPONENTIAL, 4.0, None),
    ],
)
def test_other_gaps_and_services(arrivals: dict[str, Any], service: Any, beyond_s: float, exact: float | None) -> None:
    """GI/M/1, M/D/1 and D/M/1: the interval (99.9 %) contains the exact tail."""
    if exact is None:
        busy = gamma_m1_root(0.5, 1, math.inf)
        exact = busy * math.exp(-(1 - busy) * beyond_s)
    found = sq.rare.tail(arrivals, service, beyond_s, paths=500, repetitions=30, seed=4, confidence=0.999)
    assert found.low is not None
    assert found.high is not None
    assert found.low < exact < found.high
    assert found.high < 4 * exact


def test_the_same_seed_gives_the_same_estimate() -> None:
    """All randomness comes from the seed."""
    first, second, other = (sq.rare.tail(POISSON, 1.0, 9, paths=50, repetitions=10, seed=seed) for seed in (7, 7, 8))
    assert first == second != other


@pytest.mark.parametrize("service", [EXPONENTIAL, 1.0], ids=["M/M/1", "M/D/1"])
def test_intervals_cover_the_exact_tail(service: Any) -> None:
    """Of 25 intervals of P(W > 4) at a load of 0.5, 0.068 and 0.0059, at least 20 contain it: 90 % do in 97 of 100."""
    exact = 0.5 * math.exp(-0.5 * 4) if service is EXPONENTIAL else 1 - md1_wait_cdf(0.5, 1, 4)
    arrivals = {"process": "poisson", "rate_rps": 0.5}
    found = [sq.rare.tail(arrivals, service, 4, paths=100, repetitions=10, seed=seed) for seed in range(25)]
    known = [one for one in found if one.low is not None]
    assert len(known) >= 22
    covered = sum(one.low <= exact <= one.high for one in known)  # type: ignore[operator] # both are known
    assert covered >= len(known) - 5


def test_an_estimate_is_a_ratio_of_means_and_stays_a_probability() -> None:
    """At 0.95 cycles are long and few: the mean of ratios would be far too large; this estimate is right or told."""
    arrivals = {"process": "poisson", "rate_rps": 0.95}
    exact = 0.95 * math.exp(-0.05)
    found = [
        sq.rare.tail(arrivals, EXPONENTIAL, 1.0, paths=50, repetitions=10, seed=seed, confidence=0.999)
        for seed in range(4)
    ]
    for one in found:
        assert one.reason or one.low <= exact <= one.high <= 1  # type: ignore[operator] # both are known
        assert one.probability <= 1 or one.low is None


def test_an_interval_that_few_repetitions_decide_is_none() -> None:
    """At 3e-16, 50 paths per level are far too few: the repetitions differ by orders of magnitude, and that is told."""
    found = sq.rare.tail({"process": "poisson", "rate_rps": 0.5}, EXPONENTIAL, 70, paths=50, repetitions=10)
    assert (found.low, found.high, found.crude_customers) == (None, None, None)
    assert "increase paths to about" in found.reason or "no path came to the end; increase paths" in found.reason


@pytest.mark.parametrize(("sigma", "beyond_s"), [(1.0, 60.0), (1.5, 500.0)])
def test_waits_that_one_long_service_makes_are_told(sigma: float, beyond_s: float) -> None:
    """Lognormal services: most waits beyond 60 s follow one very long service, of which a few came, or none."""
    service = {"distribution": "lognormal", "median_s": math.exp(-sigma * sigma / 2), "sigma": sigma}
    found = sq.rare.tail({"process": "poisson", "rate_rps": 0.5}, service, beyond_s, paths=50, repetitions=10)
    assert found.low is None
    assert "single services of more than" in found.reason


def test_the_share_of_single_services_is_that_of_subexponential_theory() -> None:
    """The load over 1 - load times the tail of the residual service, here by numerical integration."""
    service = LognormalDuration(0.7, 1.2)
    queue = _Queue(PoissonArrivals(0.5), service)
    beyond, _ = integrate.quad(lambda s: stats.lognorm.sf(s, 1.2, scale=0.7), 30, np.inf)
    load = 0.5 * service.mean_s()
    assert queue.by_one_service(30) == pytest.approx(load / (1 - load) * beyond / service.mean_s(), rel=1e-6)
    assert queue.longer_than(30) == pytest.approx(stats.lognorm.sf(30, 1.2, scale=0.7))


@pytest.mark.parametrize(
    ("arrivals", "service"),
    [
        ({"process": "constant", "rate_rps": 0.5}, 1.0),
        ({"process": "constant", "rate_rps": 0.5}, {"distribution": "uniform", "low_s": 0, "high_s": 2}),
        (POISSON, 0.0),
    ],
)
def test_a_wait_that_cannot_be_has_the_probability_0(arrivals: Any, service: Any) -> None:
    """If no service is longer than a gap, no customer waits: that is exact, and nothing is simulated."""
    found = sq.rare.tail(arrivals, service, 3)
    assert (found.probability, found.low, found.high, found.customers, found.reason) == (0, 0, 0, 0, "")


def test_a_wait_beyond_reach_is_refused() -> None:
    """What has less than 1e-36, as 1e-88 in M/M/1, is refused; if hardly a customer waits at all, paths are too few."""
    with pytest.raises(InputError, match=r"beyond_s = 400.0: after 60 levels, paths have come to [\d.]+ s; "):
        sq.rare.tail({"process": "poisson", "rate_rps": 0.5}, EXPONENTIAL, 400, paths=50, repetitions=10)
    with pytest.raises(InputError, match="paths = 50: too few"):
        sq.rare.tail({"process": "poisson", "rate_rps": 1e-6}, EXPONENTIAL, 3, paths=50, repetitions=10)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"beyond_s": "5"}, "beyond_s = '5': must be a number > 0, written without quotes"),
        ({"beyond_s": True}, "beyond_s = true: must be a number > 0"),
        ({"paths": 60.5}, "paths = 60.5: must be a whole number >= 50"),
        ({"paths": 49}, "paths = 49: must be >= 50"),
        ({"repetitions": None}, "repetitions = null: must be a whole number >= 10"),
        ({"seed": -1}, "seed = -1: must be >= 0"),
        ({"confidence": 1}, "confidence = 1: must be < 1"),
        ({"arrivals": "poisson"}, "arrivals = 'poisson': must be a mapping"),
        ({"arrivals": {"process": "poison"}}, "arrivals.process = 'poison': must be poisson, .*did you mean 'poisson'"),
        ({"arrivals": {1: 2}}, "arrivals"),
        ({"service": {}}, "service.distribution: this key is missing"),
        ({"service": [1]}, "service: must be a mapping"),
    ],
)
def test_wrong_arguments_are_told_in_a_line(given: dict[str, Any], told: str) -> None:
    """Every argument is checked, with its name, its value and what is allowed."""
    usual: dict[str, Any] = {"arrivals": POISSON, "service": 1.0, "beyond_s": 3.0}
    with pytest.raises(InputError, match=told) as error:
        sq.rare.tail(**{**usual, **given})
    assert "\n" not in str(error.value)


def test_numbers_of_numpy_are_numbers() -> None:
    """An argument can come from an array."""
    few = {"paths": np.int64(50), "repetitions": np.int32(10)}
    assert sq.rare.tail(POISSON, 1.0, np.float64(3), **few) == sq.rare.tail(POISSON, 1.0, 3.0, paths=50, repetitions=10)


def test_the_levels_do_not_matter_for_the_mean() -> None:
    """With one level, or many that are hardly apart, the estimate is that of the same probability."""
    exact = 0.8 * math.exp(-0.2 * 5)

    def mean(levels: tuple[float, ...]) -> float:
        rng = np.random.default_rng(9)
        found = [
            sample(lambda n: rng.exponential(1, n) - rng.exponential(1.25, n), levels, 400, rng) for _ in range(20)
        ]
        return float(np.mean([one.probability for one in found]))

    assert mean((5.0,)) == pytest.approx(exact, rel=0.12)
    assert mean((0.1, 0.2, 1.0, 3.0, 4.9, 5.0)) == pytest.approx(exact, rel=0.12)


@pytest.mark.parametrize(
    ("arrivals", "service", "beyond_s", "told"),
    [
        (POISSON, 2.0, 3, "must be below 1"),
        (POISSON, {"distribution": "exponential", "mean_s": -1.0}, 3, "service.mean_s = -1"),
        ({"process": "poisson", "rate_rps": 0.0}, 1.0, 3, "arrivals.rate_rps = 0"),
        ({"process": "sinusoid", "mean_rps": 0.5, "amplitude": 0.5, "period_s": 9.0}, 1.0, 3, "arrivals"),
        (POISSON, 1.0, 0, "beyond_s = 0"),
        (POISSON, 1.0, math.nan, "beyond_s = .nan"),
    ],
)
def test_what_has_no_tail_is_refused(arrivals: Any, service: Any, beyond_s: float, told: str) -> None:
    """Unstable queues, invalid laws and gaps that depend on each other are told with their key."""
    with pytest.raises(InputError, match=told):
        sq.rare.tail(arrivals, service, beyond_s)
