"""Selection of the best: its rules against direct computations, and how often it is right."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from simqueue.statistics.selection import FIRST_STAGE, Rule, dropped, last_stage, told_apart

SAMPLES = st.lists(st.lists(st.integers(-50, 50).map(float), min_size=12, max_size=12), min_size=2, max_size=5)


def likelihood_ratio(differences: np.ndarray) -> float:
    """Return the density of the t-statistic, averaged over normally distributed effects, over that without effect."""
    n = len(differences)
    t = differences.mean() / (differences.std(ddof=1) / n**0.5)
    density = integrate.quad(
        lambda effect: stats.norm.pdf(effect) * stats.nct.pdf(t, n - 1, effect * n**0.5), -6, 6, epsabs=0, epsrel=1e-6
    )[0]
    return float(density / stats.t.pdf(t, n - 1))


def kim_nelson(values: dict[str, np.ndarray], zone: float, error: float) -> set[str]:
    """Return what KN drops, from the formulas of the paper (2006, c = 1, smallest is best) written out."""
    out = set()
    for i, own in values.items():
        for j, other in values.items():
            n = len(own)
            eta = 0.5 * ((2 * error) ** (-2 / (n - 1)) - 1)
            h_squared, variance = 2 * eta * (n - 1), np.var(own - other, ddof=1)
            width = max(0.0, zone / (2 * n) * (h_squared * variance / zone**2 - n))
            if i != j and own.mean() > other.mean() + width:
                out.add(i)
    return out


@pytest.mark.parametrize("shift", [0.0, 0.4, 1.0])
def test_the_sequential_test_is_the_averaged_likelihood_ratio(shift: float) -> None:
    """The closed form is the integral over all effects: it decides at exactly that level."""
    values = np.random.default_rng(7).normal(shift, 1, 15)
    ratio = likelihood_ratio(values)
    assert told_apart(values.tolist(), [0.0] * 15, 1 / (ratio * 0.999))
    assert not told_apart(values.tolist(), [0.0] * 15, 1 / (ratio * 1.001))


def test_equal_alternatives_are_seldom_told_apart_however_often_one_looks() -> None:
    """With a look after every replication from the 3rd to the 60th, 5 % at most of equal pairs are told apart."""
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(300):
        values = rng.normal(0, 1, 60).tolist()
        wrong += any(told_apart(values[:n], [0.0] * n, 0.05) for n in range(3, 61))
    assert wrong / 300 <= 0.05 + 2 * (0.05 * 0.95 / 300) ** 0.5


def test_alternatives_are_dropped_as_the_paper_says() -> None:
    """With 12 or 40 values of three alternatives: those of KN, or of the t-test, with their shares of the error."""
    rng, some = np.random.default_rng(2), 0
    for n in (12, 40, 12, 40):
        values = {str(i): rng.normal(i, 3, n) + rng.normal(0, 3) for i in range(3)}
        found = set(dropped({name: list(one) for name, one in values.items()}, Rule(3, 1.0, 0.95)))
        tested = {
            i
            for i in values
            for j in values
            if values[i].mean() > values[j].mean() and likelihood_ratio(values[i] - values[j]) >= 2 / (0.2 * 0.05)
        }
        assert found == kim_nelson(values, 1.0, 0.8 * 0.05 / 2) | tested
        some += bool(found)
    assert some > 1


@given(SAMPLES, st.floats(0.1, 10))
def test_the_leading_alternative_is_never_dropped(samples: list[list[float]], zone: float) -> None:
    """The one with the smallest sum stays, and from the last stage on only its equals stay with it."""
    values = {str(i): one for i, one in enumerate(samples)}
    rule = Rule(len(values), zone, 0.95)
    totals = {name: math.fsum(one) for name, one in values.items()}
    leading = {name for name in values if totals[name] == min(totals.values())}
    gone = set(dropped(values, rule))
    assert not gone & leading
    if last_stage(values, rule) <= 12:
        assert set(values) - gone == leading


def select(rng: np.random.Generator, means: np.ndarray, zone: float) -> tuple[int, int]:
    """Return the alternative selected, and the number of runs; all share half of their variance of 16."""
    made = np.empty((0, len(means)))
    left, runs = tuple(map(str, range(len(means)))), 0
    rule = Rule(len(means), zone, 0.95)
    while True:
        more = max(2, len(made) // 8) if len(made) else FIRST_STAGE
        shared, own = rng.normal(0, 8**0.5, (more, 1)), rng.normal(0, 8**0.5, (more, len(means)))
        made = np.vstack((made, means + shared + own))
        runs += more * len(left)
        gone = dropped({name: made[:, int(name)].tolist() for name in left}, rule)
        left = tuple(name for name in left if name not in gone)
        if len(left) == 1:
            return int(left[0]), runs


def test_the_best_is_selected_with_less_than_half_the_runs_of_equal_allocation() -> None:
    """The best is ahead of four others by just the zone: 95 % are right, and Clark and Yang need twice the runs.

    Their rule: as many runs of each as t^2 S^2 / zone^2, for Student's t with nine degrees of freedom.
    """
    rng, tries = np.random.default_rng(11), 60
    found = [select(rng, np.array([0.0, 1, 1, 1, 1]), 1.0) for _ in range(tries)]
    right = sum(name == 0 for name, _ in found) / tries
    assert right >= 0.95 - 2 * (0.95 * 0.05 / tries) ** 0.5
    equal = 5 * stats.t.ppf(1 - 0.05 / 4, FIRST_STAGE - 1) ** 2 * 16 / 1.0**2
    assert np.mean([runs for _, runs in found]) < equal / 2
