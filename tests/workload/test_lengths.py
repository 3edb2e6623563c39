"""Promises of the length distributions: bounds, exact moments, common random numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from scipy import integrate, stats

from simqueue.errors import InputError
from simqueue.workload.build import build_lengths
from simqueue.workload.lengths import LengthSettings
from simqueue.workload.lengths.base import LengthDistribution
from simqueue.workload.streams import stream

from ..helpers.profiles import examples

ADAPTER: TypeAdapter[Any] = TypeAdapter(LengthSettings)


def lengths(base_dir: Path = Path(), **keys: Any) -> LengthDistribution:
    """Return the distribution that the keys of a scenario describe."""
    return build_lengths(ADAPTER.validate_python(keys), base_dir)


BOUNDED = [
    {"distribution": "constant", "value": 700},
    {"distribution": "uniform", "low": 3, "high": 900},
    {"distribution": "lognormal", "median": 700, "sigma": 0.9},
    {"distribution": "lognormal", "mean": 300, "cv": 1.2},
    {"distribution": "geometric", "mean": 100},
    {"distribution": "geometric", "mean": 1.25},
    {"distribution": "exponential", "mean": 250},
    {"distribution": "empirical", "values": [900, 5, 77, 300], "weights": [1, 0.5, 2.5, 0]},
    {"distribution": "gamma", "mean": 250, "cv": 0.5},
    {"distribution": "gamma", "mean": 100, "cv": 2.0},
    {"distribution": "pareto", "scale": 40, "alpha": 6.0},
    {"distribution": "pareto", "scale": 1, "alpha": 8.5},
    {"distribution": "zipf", "exponent": 1.1, "ranks": 5000},
    {"distribution": "zipf", "exponent": 0.5, "ranks": 700},
    {"distribution": "histogram", "edges": [1, 10, 500, 900], "weights": [1, 5, 0.5]},
]
BOUNDS: list[dict[str, Any]] = [
    {},
    {"min": 64, "max": 4096},
    {"min": 5, "max": 800, "bounds": "resample"},
    {"max": 50},
    {"min": 300},
]


def table(keys: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return values and weights, before bounds, of a distribution on finitely many values."""
    if keys["distribution"] == "zipf":
        ranks = np.arange(1, keys["ranks"] + 1)
        return ranks, stats.zipfian(keys["exponent"], keys["ranks"]).pmf(ranks)
    if keys["distribution"] == "histogram":
        bins = list(zip(keys["edges"], keys["edges"][1:], keys["weights"], strict=False))
        pairs = [(value, weight / (b - a)) for a, b, weight in bins for value in range(a, b)]
        return np.array([value for value, _ in pairs]), np.array([weight for _, weight in pairs])
    first, last = keys.get("low", keys.get("value", 0)), keys.get("high", keys.get("value", 0))
    values = np.array(keys.get("values", range(first, last + 1)))
    return values, np.array(keys.get("weights", np.ones(len(values))), dtype=float)


def probabilities(keys: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return values and probabilities of a distribution, computed independently from scipy's distributions.

    Probabilities outside [min, max] are moved to the ends or cut off; the support is cut where 1e-24 is left.
    """
    kind = keys["distribution"]
    low, high = keys.get("min", 1), keys.get("max")
    resample = keys.get("bounds") == "resample"
    if kind in ("constant", "uniform", "empirical", "zipf", "histogram"):
        values, weights = table(keys)
        if resample:
            inside = (values >= low) & (values <= high)
            values, weights = values[inside], weights[inside]
        return np.clip(values, low, np.inf if high is None else high), weights / weights.sum()
    if kind == "lognormal":
        sigma = keys.get("sigma") or math.sqrt(math.log(1 + keys["cv"] ** 2))
        scale = keys.get("median") or keys["mean"] / math.exp(sigma**2 / 2)
        continuous: Any = stats.lognorm(sigma, scale=scale)
    elif kind == "exponential":
        continuous = stats.expon(scale=keys["mean"])
    elif kind == "gamma":
        continuous = stats.gamma(keys["cv"] ** -2, scale=keys["mean"] * keys["cv"] ** 2)
    elif kind == "pareto":
        continuous = stats.pareto(keys["alpha"], scale=keys["scale"])
    else:
        continuous = stats.geom(1 / keys["mean"])
    # scipy cannot invert such a far tail of a distribution on integers.
    end = math.log(1e-24) / math.log1p(-1 / keys["mean"]) if kind == "geometric" else continuous.isf(1e-24)
    last = int(end) + 2 + low if high is None else high
    edges = np.arange(low, last + 1)
    step = 1 if kind == "geometric" else 0  # P(N >= k): sf is P(X > k), so one token earlier on whole numbers
    survival = continuous.sf(edges - step)
    if resample:
        beyond = continuous.sf(high)
        survival = (survival - beyond) / (survival[0] - beyond)
    else:
        survival[0] = 1.0
    return edges, survival - np.append(survival[1:], 0.0)


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("keys", BOUNDED, ids=str)
def test_moments_are_exact_after_bounds_and_floor(keys: dict[str, Any], bounds: dict[str, Any]) -> None:
    """Mean and variance equal the sums over the probabilities of all integers."""
    if keys.get("mean") == 1.25 and bounds.get("bounds") == "resample":
        bounds = {"min": 2, "max": 6, "bounds": "resample"}
    both = keys | bounds
    values, weights = probabilities(both)
    mean = float((values * weights).sum())
    variance = float(((values - mean) ** 2 * weights).sum())
    assert lengths(**both).mean() == pytest.approx(mean, rel=1e-11)
    assert lengths(**both).variance() == pytest.approx(variance, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("keys", BOUNDED, ids=str)
def test_samples_have_the_stated_moments(keys: dict[str, Any], bounds: dict[str, Any]) -> None:
    """Over 400 000 samples the mean and the variance lie within four standard errors of the stated ones."""
    if keys.get("mean") == 1.25 and bounds.get("bounds") == "resample":
        bounds = {"min": 2, "max": 6, "bounds": "resample"}
    both = keys | bounds
    this = lengths(**both)
    n = 400_000
    x = this.sample(stream(20, 0, "lengths"), n).astype(float)
    values, weights = probabilities(both)
    fourth = float(((values - this.mean()) ** 4 * weights).sum())
    variance = this.variance()
    assert abs(x.mean() - this.mean()) <= 4 * math.sqrt(variance / n)
    assert abs(x.var() - variance) <= 4 * math.sqrt(max(0.0, fourth - variance**2) / n) + 1e-9


def test_geometric_has_its_textbook_moments() -> None:
    """Geometric on 1, 2, ... with mean m has variance m (m - 1)."""
    this = lengths(distribution="geometric", mean=100)
    assert this.mean() == pytest.approx(100, rel=1e-13)
    assert this.variance() == pytest.approx(100 * 99, rel=1e-12)
    one = lengths(distribution="geometric", mean=1)
    assert (one.mean(), one.variance()) == (1, 0)
    assert set(one.sample(stream(0, 0, "x"), 1000).tolist()) == {1}


@given(mean=st.floats(1.01, 1e5))
@examples(40)
def test_geometric_has_its_textbook_moments_at_any_mean(mean: float) -> None:
    """However many terms are summed before the integral: m and m (m - 1)."""
    found = lengths(distribution="geometric", mean=mean)
    assert found.mean() == pytest.approx(mean, rel=1e-11)
    assert found.variance() == pytest.approx(mean * (mean - 1), rel=1e-11)


@pytest.mark.parametrize(("median", "sigma"), [(20, 0.05), (500, 0.8), (3000, 0.3), (2e5, 0.01)])
def test_lognormal_has_the_moments_of_all_its_terms(median: float, sigma: float) -> None:
    """Summed one by one as far as they are not 0, also where the tail is a step far from the start."""
    found = lengths(distribution="lognormal", median=median, sigma=sigma)
    k = np.arange(2, int(median * math.exp(9 * sigma)) + 2)
    tail = stats.lognorm.sf(k, sigma, scale=median)
    mean = 1 + tail.sum()
    assert found.mean() == pytest.approx(mean, rel=1e-11)
    assert found.variance() == pytest.approx(1 + ((2 * k - 1) * tail).sum() - mean**2, rel=1e-8)


def test_uniform_has_its_textbook_moments() -> None:
    """Uniform on low..high has mean (low + high)/2 and variance (n² - 1)/12 with n values."""
    this = lengths(distribution="uniform", low=10, high=20)
    assert (this.mean(), this.variance()) == (15, 10)


def test_moments_hold_far_beyond_the_terms_that_are_summed() -> None:
    """With lengths of up to billions the mean is still exact: rounding down takes 1/2 on average."""
    heavy = lengths(distribution="lognormal", median=3e7, sigma=1.2)
    raw_mean = 3e7 * math.exp(1.2**2 / 2)
    raw_variance = raw_mean**2 * (math.exp(1.2**2) - 1)
    assert heavy.mean() == pytest.approx(raw_mean - 0.5, rel=1e-11)
    assert heavy.variance() == pytest.approx(raw_variance, rel=1e-9)
    exponential = lengths(distribution="exponential", mean=5e7)
    # floor of an exponential is geometric on 0, 1, ...; min 1 moves its 0 to 1.
    q = math.exp(-1 / 5e7)
    at_zero = -math.expm1(-1 / 5e7)
    assert exponential.mean() == pytest.approx(q / at_zero + at_zero, rel=1e-11)
    bounded = lengths(distribution="lognormal", median=3e7, sigma=1.2, min=1000, max=20_000_000)
    raw = stats.lognorm(1.2, scale=3e7)
    between = integrate.quad(raw.sf, 1000.5, 20_000_000.5, epsabs=0, epsrel=1e-12, limit=500)[0]
    assert bounded.mean() == pytest.approx(1000 + between, rel=1e-10)


def test_lognormal_parameters_can_be_given_either_way() -> None:
    """median and mean, sigma and cv are two ways to give the same distribution."""
    sigma = 0.9
    cv = math.sqrt(math.exp(sigma**2) - 1)
    one = lengths(distribution="lognormal", median=700, sigma=sigma, max=4096)
    other = lengths(distribution="lognormal", mean=700 * math.exp(sigma**2 / 2), cv=cv, max=4096)
    assert one.mean() == pytest.approx(other.mean(), rel=1e-12)


def test_common_random_numbers() -> None:
    """With one seed a longer distribution gives every request a longer prompt: one uniform number each, inverted."""
    shorter = lengths(distribution="lognormal", median=700, sigma=0.9).sample(stream(1, 0, "p"), 5000)
    longer = lengths(distribution="lognormal", median=800, sigma=0.9).sample(stream(1, 0, "p"), 5000)
    other = lengths(distribution="exponential", mean=700).sample(stream(1, 0, "p"), 5000)
    assert (longer >= shorter).all()
    assert stats.spearmanr(shorter, other).statistic > 0.9999
    assert lengths(distribution="geometric", mean=9).sample(stream(1, 0, "p"), 10).tolist() == (
        lengths(distribution="geometric", mean=9).sample(stream(1, 0, "p"), 5000)[:10].tolist()
    )


EVERY_KIND = [
    *("constant", "uniform", "lognormal", "geometric", "exponential"),
    *("empirical", "gamma", "pareto", "zipf", "histogram"),
]


@st.composite
def bounded_distributions(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the keys of any distribution with bounds."""
    low = draw(st.integers(1, 500))
    high = draw(st.integers(low, low + 2000))
    kind = draw(st.sampled_from(EVERY_KIND))
    size = draw(st.floats(1, 3000, allow_nan=False))
    values = draw(st.lists(st.integers(1, 3000), min_size=1, max_size=8))
    own: dict[str, dict[str, Any]] = {
        "constant": {"value": values[0]},
        "uniform": {"low": min(values), "high": max(values)},
        "lognormal": {"median": size, "sigma": draw(st.floats(0.05, 3))},
        "geometric": {"mean": size},
        "exponential": {"mean": size},
        "empirical": {"values": values},
        "gamma": {"mean": size, "cv": draw(st.floats(0.05, 4))},
        "pareto": {"scale": size, "alpha": draw(st.floats(0.2, 9))},
        "zipf": {"exponent": draw(st.floats(0.1, 4)), "ranks": max(values)},
        "histogram": {"edges": sorted({1, *values, 3001}), "weights": [1.0] * len({1, *values})},
    }
    bounds = draw(st.sampled_from(["clip", "resample"]))
    return {"distribution": kind, "min": low, "max": high, "bounds": bounds, **own[kind]}


@examples(150)
@given(keys=bounded_distributions(), seed=st.integers(0, 2**32))
def test_every_distribution_keeps_its_bounds(keys: dict[str, Any], seed: int) -> None:
    """No sample and no mean is outside [min, max]; impossible bounds are an error."""
    try:
        this = lengths(**keys)
    except InputError as error:
        assert keys["bounds"] == "resample"
        assert "can never draw" in str(error)  # noqa: PT017  (only some drawn keys are an error)
        return
    x = this.sample(stream(seed, 0, "x"), 300)
    assert x.dtype == np.int64
    assert keys["min"] <= x.min()
    assert x.max() <= keys["max"]
    assert keys["min"] - 1e-9 <= this.mean() <= keys["max"] + 1e-9
    assert 0 <= this.variance() <= (keys["max"] - keys["min"]) ** 2 / 4 + 1e-6


TEN = {"distribution": "constant", "value": 10}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"distribution": "constant", "value": 0}, "greater than or equal to 1"),
        ({"distribution": "uniform", "low": 0, "high": 5}, "greater than or equal to 1"),
        ({"distribution": "uniform", "low": 6, "high": 5}, "low\n  must be at most high, which is 5"),
        ({"distribution": "geometric", "mean": 0.5}, "greater than or equal to 1"),
        ({"distribution": "exponential", "mean": 8000, "min": 0}, "greater than or equal to 1"),
        (
            {"distribution": "exponential", "mean": 8000, "min": 1000, "max": 500},
            "min\n  must be at most max, which is 500",
        ),
        ({"distribution": "exponential", "mean": math.nan}, "finite number"),
        ({"distribution": "lognormal", "median": 700}, "exactly one of sigma, cv"),
        ({"distribution": "lognormal", "median": 700, "mean": 900, "sigma": 1}, "exactly one of median, mean"),
        ({"distribution": "lognormal", "median": 700, "sigma": 6}, "give a max"),
        ({"distribution": "empirical"}, "exactly one of values, path"),
        ({"distribution": "empirical", "values": [3, 0]}, "greater than or equal to 1"),
        ({"distribution": "empirical", "values": [3, 4], "weights": [1]}, "1 weights for 2 values"),
        ({"distribution": "empirical", "values": [3, 4], "weights": [0, 0]}, "must be positive"),
        (
            {"distribution": "pareto", "scale": 10, "alpha": 2.0},
            "variance is infinite for alpha up to 2: give a max",
        ),
        ({"distribution": "gamma", "mean": 10, "cv": 0.0}, "greater than or equal to 0.001"),
        ({"distribution": "gamma", "mean": 10, "cv": math.inf}, "finite number"),
        ({"distribution": "zipf", "exponent": 1.0, "ranks": 10**9}, "less than or equal to 2000000"),
        ({"distribution": "histogram", "edges": [1, 5, 5], "weights": [1, 1]}, "edges must ascend"),
        ({"distribution": "histogram", "edges": [1, 5], "weights": [1, 1]}, "2 edges for 2 weights"),
        ({"distribution": "histogram", "edges": [1, 5], "weights": [0]}, "must be positive"),
        ({"distribution": "mixture", "components": []}, "at least 1 entry"),
        ({"distribution": "mixture", "components": [{"weight": 0.0, "law": TEN}]}, "greater than 0"),
        ({"distribution": "mixture", "components": [{"weight": 1.0, "law": TEN}], "max": 5}, "unknown key 'max'"),
        ({"distribution": "exponentail", "mean": 10}, "exponential"),
        ({"distribution": "exponential", "mean": 10, "minimum": 3}, "did you mean 'min'"),
        ({"distribution": "constant", "value": 3.5}, "valid integer"),
    ],
    ids=str,
)
def test_impossible_distributions_are_rejected(keys: dict[str, Any], said: str) -> None:
    """A distribution that is impossible, or that could make less than one token, is an error with the reason."""
    with pytest.raises(ValidationError) as caught:
        lengths(**keys)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "keys",
    [
        {"distribution": "empirical", "values": [3], "min": 9},
        {"distribution": "constant", "value": 3, "min": 9},
        {"distribution": "uniform", "low": 3, "high": 8, "min": 9},
        {"distribution": "exponential", "mean": 10, "min": 900},
        {"distribution": "gamma", "mean": 10, "cv": 0.5, "min": 900},
        {"distribution": "zipf", "exponent": 1.0, "ranks": 5, "min": 6},
    ],
    ids=str,
)
def test_bounds_without_lengths_inside_are_rejected(keys: dict[str, Any]) -> None:
    """If no length can be drawn inside bounds that are to be resampled, the error names the key."""
    with pytest.raises(
        InputError, match=r"^bounds = 'resample': this distribution can never draw a length of at least"
    ):
        lengths(**keys, bounds="resample")


def test_empirical_values_from_a_file(tmp_path: Path) -> None:
    """A file of values and weights gives the same distribution as the same lists; errors name the line."""
    (tmp_path / "lengths.csv").write_text("tokens,weight\n100,1\n50,3\n")
    filed = lengths(tmp_path, distribution="empirical", path="lengths.csv")
    listed = lengths(distribution="empirical", values=[100, 50], weights=[1, 3])
    assert filed.mean() == listed.mean() == 62.5
    assert filed.variance() == listed.variance() == 468.75
    (tmp_path / "bad.csv").write_text("tokens\n100\n0\n")
    with pytest.raises(InputError, match=r"bad\.csv:3: tokens '0' is not between 1 and"):
        lengths(tmp_path, distribution="empirical", path="bad.csv")
    with pytest.raises(InputError, match=r"none\.csv: no such file"):
        lengths(tmp_path, distribution="empirical", path="none.csv")


def test_heavy_tails_are_bounded_by_max_and_know_it() -> None:
    """Pareto with infinite mean is allowed with a max; far beyond the summed terms the moments are the integrals."""
    wild = lengths(distribution="pareto", scale=3_000_000, alpha=0.7, max=900_000_000)
    raw = stats.pareto(0.7, scale=3e6)
    beyond = integrate.quad(raw.sf, 3e6, 9e8, epsabs=0, epsrel=1e-11, limit=500)[0]
    second = integrate.quad(lambda x: 2 * x * raw.sf(x), 3e6, 9e8, epsabs=0, epsrel=1e-11, limit=500)[0]
    assert wild.mean() == pytest.approx(3e6 + beyond, rel=1e-6)
    assert wild.variance() == pytest.approx(9e12 + second - (3e6 + beyond) ** 2, rel=1e-6)
    steep = lengths(distribution="pareto", scale=5_000_000, alpha=5.0)
    assert steep.mean() == pytest.approx(5e6 * 5 / 4 - 0.5, rel=1e-10)
    assert steep.variance() == pytest.approx(25e12 * 5 / (16 * 3), rel=1e-6)
    wide = lengths(distribution="gamma", mean=20_000_000, cv=1.5)
    assert wide.mean() == pytest.approx(2e7, rel=1e-3)
    assert wide.variance() == pytest.approx((3e7) ** 2, rel=1e-3)


def test_mixture_has_the_moments_of_its_parts() -> None:
    """Mean and variance within and between the parts; each part comes as often as its weight (|z| < 4)."""
    both = lengths(
        distribution="mixture",
        components=[
            {"weight": 3, "law": {"distribution": "constant", "value": 10}},
            {"weight": 1, "law": {"distribution": "uniform", "low": 101, "high": 103}},
        ],
    )
    assert both.mean() == pytest.approx(0.75 * 10 + 0.25 * 102, rel=1e-14)
    assert both.variance() == pytest.approx(0.25 * 2 / 3 + 0.75 * 0.25 * 92**2, rel=1e-13)
    x = both.sample(stream(1, 0, "m"), 100_000)
    assert abs((x == 10).mean() - 0.75) < 4 * math.sqrt(0.75 * 0.25 / 100_000)
    counts = np.bincount(x)[101:104]
    assert stats.chisquare(counts).pvalue > 0.001
