"""Rare waits by splitting against exact tails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import simqueue as sq
from simqueue.errors import InputError
from simqueue.statistics.splitting import sample
from simqueue.theory import gamma_m1_root, md1_decay

POISSON = {"process": "poisson", "rate_rps": 0.8}
EXPONENTIAL = {"distribution": "exponential", "mean_s": 1.0}


def test_a_wait_beyond_60_s_of_mm1_at_a_fiftieth_of_the_effort() -> None:
    """P(W > 60) = 0.8 exp(-12) = 4.9e-6, within 30 %, from 50 times fewer customers than a plain run needs."""
    exact = 0.8 * math.exp(-0.2 * 60)
    found = sq.rare.tail(POISSON, EXPONENTIAL, 60, paths=200, repetitions=8, seed=1)
    assert found.probability == pytest.approx(exact, rel=0.3)
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
        (POISSON, 1.0, 20.0, md1_decay(0.8, 1)[1] * math.exp(-md1_decay(0.8, 1)[0] * 20)),
        ({"process": "constant", "rate_rps": 0.5}, EXPONENTIAL, 10.0, None),
    ],
)
def test_other_gaps_and_services(arrivals: dict[str, Any], service: Any, beyond_s: float, exact: float | None) -> None:
    """GI/M/1, M/D/1 and D/M/1: the interval (99.9 %) contains the exact tail."""
    if exact is None:
        busy = gamma_m1_root(0.5, 1, math.inf)
        exact = busy * math.exp(-(1 - busy) * beyond_s)
    found = sq.rare.tail(arrivals, service, beyond_s, paths=150, repetitions=10, seed=4, confidence=0.999)
    assert found.low < exact < found.high
    assert found.high < 4 * exact


def test_the_same_seed_gives_the_same_estimate() -> None:
    """All randomness comes from the seed."""
    first, second, other = (sq.rare.tail(POISSON, 1.0, 9, paths=50, repetitions=3, seed=seed) for seed in (7, 7, 8))
    assert first == second != other


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
        (POISSON, 1.0, math.nan, "beyond_s = nan"),
    ],
)
def test_what_has_no_tail_is_refused(arrivals: Any, service: Any, beyond_s: float, told: str) -> None:
    """Unstable queues, invalid laws and gaps that depend on each other are told with their key."""
    with pytest.raises(InputError, match=told):
        sq.rare.tail(arrivals, service, beyond_s)
