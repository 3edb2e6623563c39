"""Service orders with heavy tails and close to saturation, against integrals; large chains against full ones."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from simqueue.errors import InputError
from simqueue.theory import bulk, disciplines

BELOW_1 = 1 - 2.0**-53


def pareto(power: float, load: float) -> dict[str, Any]:
    """Return SJF, SRPT and FB for Pareto service times of least value 1, as integrals over q = P(S > x)."""
    a, rho = mp.mpf(power), mp.mpf(load)
    rate = rho * (a - 1) / a
    half = (a - 1) / a

    def below(q: Any) -> Any:  # 1 - load of jobs up to the size with P(S > x) = q
        return 1 - rho + rho * q**half

    def cut(q: Any) -> Any:  # 1 - load of jobs cut at that size
        return 1 - rho + rate * q**half / (a - 1)

    def second(q: Any) -> Any:  # E[min(S, x)²]
        return 1 + 2 * (q ** ((a - 2) / a) - 1) / (2 - a) if a != 2 else 1 - mp.log(q)

    def over(f: Any) -> Any:
        with mp.workdps(20):  # with q = exp(-s), because powers of q near 0 are hard to integrate
            return mp.quad(lambda s: f(mp.exp(-s)) * mp.exp(-s), [0, 2, 10, 40, 150, 600])

    waits = a / (a - 2) * rate / 2 if a > 2 else mp.inf
    return {
        "sjf": mp.inf if a <= 2 else waits * over(lambda q: below(q) ** -2) + a / (a - 1),
        "srpt": over(lambda q: rate * second(q) / 2 / below(q) ** 2 + q ** (-1 / a) / a / below(q)) + 1,
        "fb": over(lambda q: rate * second(q) / 2 / cut(q) ** 2 + q ** (-1 / a) / cut(q)),
    }


@pytest.mark.parametrize("load", [0.3, 0.999])
@pytest.mark.parametrize("power", [1.2, 1.5, 2.0, 2.01, 2.2, 8.0])
def test_orders_with_pareto_service(power: float, load: float) -> None:
    """SJF is infinite up to a power of 2 and right above it; SRPT and FB are finite."""
    service = stats.pareto(power)
    rate = load / float(service.mean())
    wanted = pareto(power, load)
    for name, formula in (
        ("sjf", disciplines.sjf_mean_sojourn),
        ("srpt", disciplines.srpt_mean_sojourn),
        ("fb", disciplines.fb_mean_sojourn),
    ):
        assert formula(rate, service) == pytest.approx(float(wanted[name]), rel=1e-7), name


def test_orders_next_to_saturation() -> None:
    """M/M/1: the wait under FB is 1 / (1 - load) also where 1 - load has one digit left; SRPT stays far below."""
    rate = BELOW_1
    assert disciplines.fb_mean_sojourn(rate, stats.expon()) == pytest.approx(2.0**53, rel=1e-6)
    assert disciplines.srpt_mean_sojourn(rate, stats.expon()) < 2.0**53 / 10


@pytest.mark.parametrize("shape", [0.25, 0.5])
def test_a_density_that_is_infinite_at_0(shape: float) -> None:
    """FB and SRPT with gamma service times equal integrals over sizes; SJF likewise."""
    service, load = stats.gamma(shape, scale=1 / shape), 0.8
    k = mp.mpf(shape)

    def density(x: Any) -> Any:
        return (k * x) ** k * mp.exp(-k * x) / (mp.gamma(k) * x)

    def below(x: Any) -> Any:  # the load of jobs up to x: E[S; S <= x] = P(Gamma(k + 1) <= k x)
        return 1 - load * mp.gammainc(k + 1, 0, k * x, regularized=True)

    with mp.workdps(20):
        wait = (
            load * (1 + 1 / k) / 2 * mp.quad(lambda x: density(x) / below(x) ** 2, [0, 1e-9, 1e-3, 0.1, 1, 5, 20, 200])
        )
    assert disciplines.sjf_mean_sojourn(load, service) == pytest.approx(float(wait) + 1, rel=1e-4)


def test_tails_without_a_mean_or_nearly_so_are_refused() -> None:
    """A power of 1 has no mean; one of 1.01 has, but its integrals do not converge: the message names the range."""
    with pytest.raises(InputError, match="mean = inf"):
        disciplines.sjf_mean_sojourn(0.5, stats.pareto(1))
    with pytest.raises(InputError, match=r"falls like x\^-1.01 .* must be at least 1.05"):
        disciplines.srpt_mean_sojourn(0.001, stats.pareto(1.01))


def test_priorities_next_to_saturation_keep_their_digits() -> None:
    """Two equal classes of constant jobs at a load of 1 - 2^-53: Cobham's denominators are exact."""
    rate = BELOW_1 / 2
    first, second = disciplines.priority_waits((rate, rate), (1, 1), (1, 1))
    assert (first, second) == pytest.approx((BELOW_1 / 2 / (1 - rate), BELOW_1 / 2 / (1 - rate) * 2.0**53))


def full_chain(rate: float, slots: int, output: float, step_s: float, states: int) -> float:
    """Return the mean wait by the full matrix of moves from 0, 1, ... in the system; an empty server waits for one."""
    arrivals = stats.poisson(rate * step_s).pmf(np.arange(states))
    moves = np.zeros((states, states))
    for n in range(1, states):
        stay = stats.binom(min(n, slots), 1 - 1 / output).pmf(np.arange(min(n, slots) + 1))
        after = np.convolve(stay, arrivals)[: states - max(n - slots, 0)]
        moves[n, max(n - slots, 0) : max(n - slots, 0) + len(after)] = after
    moves[0, 1] = 1
    moves[1:, -1] += 1 - moves[1:].sum(axis=1)
    balance = moves.T - np.eye(states)
    balance[0] = 1
    shares = np.linalg.solve(balance, np.eye(states)[0])
    n = np.arange(states)
    waiting = shares[1:] @ (step_s * (np.maximum(n[1:] - slots, 0) + rate * step_s / 2))
    return float(waiting / (shares[1:].sum() * step_s + shares[0] / rate) / rate)


@pytest.mark.parametrize(("slots", "load", "output"), [(1, 0.5, 3), (5, 0.8, 4), (30, 0.7, 2), (60, 0.9, 20)])
def test_the_chain_of_slots_is_that_of_the_full_matrix(slots: int, load: float, output: float) -> None:
    """Few and many slots, low and high loads: a band of likely moves gives what all moves give."""
    rate = load * slots / output / 0.1
    wanted = full_chain(rate, slots, output, 0.1, 260)
    assert bulk.slotted_continuous(rate, slots, output, 0.1).mean_wait_s == pytest.approx(wanted, rel=1e-6)


def test_a_thousand_slots_wait_for_half_a_step() -> None:
    """At a load of 0.7 a slot is practically always free, so that the wait is that for the end of a step."""
    found = bulk.slotted_continuous(70, 1000, 100, 0.1)
    assert found.mean_wait_s == pytest.approx(0.05, rel=1e-9)
    assert found.mean_batch * found.busy_share == pytest.approx(700)


@pytest.mark.parametrize("durations", [[], [0.0], [1.0, math.nan], [math.inf]])
def test_batches_without_a_duration_are_refused(durations: list[float]) -> None:
    """Durations are numbers above 0, one for each size."""
    with pytest.raises(InputError, match="batch_seconds"):
        bulk.timed_batching(0.1, durations)
