"""Promises of the arrival processes beyond Poisson: each against its distribution, at fixed seeds."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError
from scipy import integrate, stats

from simqueue.errors import InputError
from simqueue.workload import WorkloadSettings
from simqueue.workload.arrivals.base import ArrivalProcess
from simqueue.workload.arrivals.settings import ArrivalProcessSettings, ArrivalSettings
from simqueue.workload.build import build_arrivals
from simqueue.workload.streams import stream

ADAPTER: TypeAdapter[ArrivalProcessSettings] = TypeAdapter(ArrivalSettings)
SEEDS = [1, 2, 3, 4, 5]


def process(base_dir: Path = Path(), **keys: Any) -> ArrivalProcess:
    """Return the process that the keys of a scenario describe, with its files read."""
    return build_arrivals(ADAPTER.validate_python(keys), base_dir)


def times(keys: dict[str, Any], seed: int = 1, replication: int = 0, **stop: Any) -> np.ndarray:
    """Return arrival times of a process."""
    return process(**keys).times(stream(seed, replication, "arrivals"), **stop)


def window_counts(keys: dict[str, Any], seed: int, window_s: float, n: int) -> np.ndarray:
    """Return the numbers of arrivals in `n` windows, one after the other, of one long run."""
    return np.histogram(times(keys, seed, until_s=n * window_s), n, (0, n * window_s))[0]


RENEWALS: list[tuple[dict[str, Any], Any]] = [
    ({"process": "gamma", "cv": 3.5}, stats.gamma(1 / 3.5**2, scale=3.5**2)),
    ({"process": "gamma", "cv": 0.5}, stats.gamma(4, scale=0.25)),
    ({"process": "gamma", "burstiness": 0.25}, stats.gamma(0.25, scale=4)),
    ({"process": "weibull", "cv": 2.0}, stats.weibull_min(0.542693, scale=0.575250)),
    ({"process": "weibull", "cv": 0.5}, stats.weibull_min(2.101349, scale=1.129063)),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("keys", "expected"), RENEWALS, ids=lambda value: str(value) if isinstance(value, dict) else ""
)
def test_renewal_gaps_have_their_distribution(keys: dict[str, Any], expected: Any, seed: int) -> None:
    """Case 47 and its kind: exactly 10 000 requests at 2000/s; mean, CV and distribution of the gaps are as asked."""
    at_s = times({**keys, "rate_rps": 2000.0}, seed, num_requests=10_000)
    units = 2000 * np.diff(at_s, prepend=0.0)
    assert len(units) == 10_000
    cv = expected.std()
    fourth = expected.expect(lambda x: (x - 1) ** 4)
    assert abs(units.mean() - 1) < 4 * cv / 100
    assert abs(units.var() - cv**2) < 4 * math.sqrt(fourth - cv**4) / 100
    # Times resolve gaps down to 1e-15 s, and a tenth of gamma gaps at cv 3.5 is shorter: tested above 1e-9 only.
    below = expected.cdf(1e-9)
    long = units[units > 1e-9]
    assert stats.binomtest(10_000 - len(long), 10_000, below).pvalue > 0.001
    assert stats.kstest(long, lambda x: (expected.cdf(x) - below) / (1 - below)).pvalue > 0.001


@pytest.mark.parametrize(
    ("cv", "shape", "scale"),
    [
        (0.5, 2.101349, 1.129063),
        (1, 1, 1),
        (1.5, 0.684773, 0.773227),
        (2, 0.542693, 0.575250),
        (3, 0.411340, 0.324415),
        (4, 0.348689, 0.196259),
    ],
)
def test_weibull_shape_for_a_cv(cv: float, shape: float, scale: float) -> None:
    """The shape that gives a CV, and the scale that gives the mean, are the known ones."""
    found = process(process="weibull", rate_rps=1.0, cv=float(cv)).shape  # type: ignore[attr-defined] # a Weibull process
    assert found == pytest.approx(shape, abs=1e-6)
    assert 1 / math.gamma(1 + 1 / found) == pytest.approx(scale, abs=1e-6)


def test_cv_and_burstiness_are_two_names_for_one_thing() -> None:
    """cv 2 and burstiness 0.25 are the same process, with the same gaps."""
    by_cv = process(process="gamma", rate_rps=5.0, cv=2.0)
    by_shape = process(process="gamma", rate_rps=5.0, burstiness=0.25)
    for one in (by_cv, by_shape):
        assert (one.shape, one.gap_scv, one.dispersion) == (0.25, 4, 4)  # type: ignore[attr-defined] # gamma
    drawn = [one.times(stream(3, 0, "x"), num_requests=500) for one in (by_cv, by_shape)]
    assert (drawn[0] == drawn[1]).all()


@pytest.mark.parametrize("burstiness", [1e308, math.inf, "inf", 1e17])
def test_a_burstiness_without_end_is_evenly_spaced(burstiness: Any) -> None:
    """Burstiness 1e308 and infinity at 2000/s put the i-th arrival at i/2000, neither at 0 nor at NaN."""
    at_s = times({"process": "gamma", "rate_rps": 2000.0, "burstiness": burstiness}, num_requests=1000)
    assert at_s == pytest.approx(np.arange(1, 1001) / 2000, rel=1e-12)


def test_burstiness_just_below_the_even_limit_is_no_jump() -> None:
    """At a shape of 1e15 gaps vary by 3e-8 of their mean, as they should."""
    gaps = np.diff(times({"process": "gamma", "rate_rps": 1.0, "burstiness": 1e15}, num_requests=20_000))
    assert gaps.std() == pytest.approx(1e-15**0.5, rel=0.05)


@pytest.mark.parametrize("keys", [{"process": "poisson"}, {"process": "gamma", "cv": 2.0}], ids=str)
def test_normalizing_puts_the_last_arrival_on_n_over_rate(keys: dict[str, Any]) -> None:
    """normalize_to_rate rescales the same pattern so that the last of n arrivals falls on n/rate, as vLLM's bench."""
    plain = times({**keys, "rate_rps": 10.0}, num_requests=500)
    bridge = times({**keys, "rate_rps": 10.0, "normalize_to_rate": True}, num_requests=500)
    assert bridge[-1] == pytest.approx(50, rel=1e-15)
    assert bridge == pytest.approx(plain * (50 / plain[-1]), rel=1e-14)
    assert plain[-1] != pytest.approx(50, rel=1e-3)


def test_normalizing_makes_the_count_less_variable() -> None:
    """A normalized Poisson process is a bridge: arrivals in its first half are binomial, half as variable."""
    keys = {"process": "poisson", "rate_rps": 1.0, "normalize_to_rate": True}
    halves = np.array([(times(keys, 5, r, num_requests=100) < 50).sum() for r in range(1500)])
    # the last of the 100 is fixed at the end, 99 fall uniformly before it
    assert abs(halves.mean() - 49.5) < 4 * math.sqrt(24.75 / 1500)
    assert abs(halves.var() - 24.75) < 4 * 24.75 * math.sqrt(2 / 1500)


# rates and switching rates per second; the facts are those of phase-type moments
BURSTS = [
    ({"process": "on_off", "rate_rps": 20 / 7, "peak_to_mean": 3.5, "mean_burst_s": 2.0}, 21.408163),
    ({"process": "on_off", "rate_rps": 4.0, "peak_to_mean": 5.0, "mean_burst_s": 1.0}, 26.6),
]


@pytest.mark.parametrize(("keys", "scv"), BURSTS, ids=["10/s on", "20/s on"])
def test_on_off_gaps_have_the_known_variability(keys: dict[str, Any], scv: float) -> None:
    """The SCV of an interrupted Poisson process is 1 + 2 rate end / (end + begin)², and the sample agrees."""
    this = process(**keys)
    assert this.gap_scv == pytest.approx(scv, rel=1e-6)
    assert this.dispersion == pytest.approx(scv, rel=1e-6)  # an interrupted Poisson process is a renewal process
    gaps = np.concatenate([np.diff(times(keys, 9, r, num_requests=20_000)) for r in range(20)])
    standard_error = math.sqrt(scv / len(gaps)) / keys["rate_rps"]
    assert abs(gaps.mean() - 1 / keys["rate_rps"]) < 4 * standard_error
    assert gaps.var() * keys["rate_rps"] ** 2 == pytest.approx(scv, rel=0.1)


def test_mmpp_counts_have_the_known_dispersion() -> None:
    """Over long windows the variance of the count over its mean is the Heffes-Lucantoni limit (|z| < 4)."""
    keys = {"process": "mmpp", "rate_rps": 10.0, "peak_to_mean": 3.0, "mean_burst_s": 0.5, "calm_to_mean": 0.5}
    this = process(**keys)
    # burst 30/s for 0.5 s on average, a fifth of the time; calm 5/s for 2 s
    begin, end = 0.5, 2.0
    limit = 1 + 2 * 25**2 * end * begin / ((end + begin) ** 2 * (30 * begin + 5 * end))
    assert this.dispersion == pytest.approx(limit, rel=1e-12)
    counts = window_counts(keys, 2, 400.0, 1500)
    mean = 4000
    # the limit is reached, and windows are independent, up to the correlation time over the window, 0.4 s in 400 s
    assert abs(counts.mean() - mean) < 4 * math.sqrt(limit * mean / 1500)
    assert abs(counts.var() / mean - limit) < 4 * limit * math.sqrt(2 / 1500) + limit * 0.4 / 400


def test_mmpp_gaps_agree_with_their_phase_type_moments() -> None:
    """The SCV of MMPP gaps is that of the sample, and lies between the Poisson process and the on-off process."""
    keys = {"process": "mmpp", "rate_rps": 10.0, "peak_to_mean": 3.0, "mean_burst_s": 0.5, "calm_to_mean": 0.2}
    gaps = np.diff(times(keys, 4, num_requests=400_000))
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(process(**keys).gap_scv, rel=0.02)
    on_off = {**keys, "process": "on_off"}
    del on_off["calm_to_mean"]
    assert 1 < process(**keys).gap_scv < process(**on_off).gap_scv  # type: ignore[operator] # both have one


def test_bursts_are_as_long_as_asked() -> None:
    """On-off with a peak so high that gaps tell bursts apart: their mean length is mean_burst_s (|z| < 4)."""
    keys = {"process": "on_off", "rate_rps": 2000.0, "peak_to_mean": 10.0, "mean_burst_s": 1.0}
    at_s = times(keys, 6, until_s=4000.0)
    breaks = np.flatnonzero(np.diff(at_s) > 0.01)
    lengths = at_s[breaks[1:]] - at_s[breaks[:-1] + 1]
    assert abs(lengths.mean() - 1) < 4 / math.sqrt(len(lengths)) + 0.01
    assert lengths.std() == pytest.approx(1, rel=0.2)


def window_z(at_s: np.ndarray, edges: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return how many standard deviations each Poisson count is from what is expected."""
    return (np.histogram(at_s, edges)[0] - expected) / np.sqrt(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_sinusoid_rate_over_time(seed: int) -> None:
    """Counts in twelfths of the period, over 50 periods, are Poisson with the area under the rate (|z| < 4)."""
    keys = {"process": "sinusoid", "rate_rps": 20.0, "amplitude": 0.8, "period_s": 60.0, "phase_s": 10.0}
    at_s = times(keys, seed, until_s=3000.0)
    edges = np.linspace(0, 60, 13)
    areas = [
        50 * integrate.quad(lambda t: 20 * (1 + 0.8 * math.sin(2 * math.pi * (t - 10) / 60)), a, b)[0]
        for a, b in itertools.pairwise(edges)
    ]
    z = window_z(at_s % 60, edges, np.array(areas))
    assert np.abs(z).max() < 4
    assert stats.chi2(12).sf((z**2).sum()) > 0.001


def test_sinusoid_between_the_peaks_is_poisson() -> None:
    """On the clock of its area the process is Poisson of rate 1: unit exponential gaps."""
    keys = {"process": "sinusoid", "rate_rps": 5.0, "amplitude": 1.0, "period_s": 40.0}
    at_s = times(keys, 8, num_requests=20_000)
    turn = 2 * math.pi / 40
    area = 5 * (at_s + (1 - np.cos(turn * at_s)) / turn)
    assert len(at_s) == 20_000
    assert stats.kstest(np.diff(area, prepend=0.0), "expon").pvalue > 0.01


PIECES = [{"for_s": 100.0, "rate_rps": 3.0}, {"for_s": 50.0, "rate_rps": 0.0}, {"for_s": 50.0, "rate_rps": 30.0}]


def test_pieces_have_their_rates_and_end() -> None:
    """Each piece has its rate; there are no arrivals where it is 0, and none after the end."""
    at_s = np.concatenate([times({"process": "piecewise", "pieces": PIECES}, 3, r, until_s=200.0) for r in range(40)])
    counts = np.histogram(at_s, [0, 100, 150, 200])[0]
    assert counts[1] == 0
    assert abs(counts[0] - 12_000) < 4 * math.sqrt(12_000)
    assert abs(counts[2] - 60_000) < 4 * math.sqrt(60_000)
    assert at_s.max() < 200
    assert process(process="piecewise", pieces=PIECES).mean_rate_rps == 9


def test_a_curve_is_never_continued_in_silence() -> None:
    """More requests, or a longer time, than the curve has are an error; repeat: true starts it over."""
    keys: dict[str, Any] = {"process": "piecewise", "pieces": PIECES}
    with pytest.raises(InputError, match=r"ends after 200 s with \d+ requests, but the workload needs 5000"):
        times(keys, num_requests=5000)
    with pytest.raises(InputError, match=r"ends after 200 s with .* needs arrivals for 201 s"):
        times(keys, until_s=201.0)
    assert len(times(keys, num_requests=10, until_s=201.0)) == 10
    again = times({**keys, "repeat": True}, num_requests=20_000)
    assert len(again) == 20_000
    assert abs(again[-1] - 20_000 / 9) < 200
    assert ((again % 200 < 100) | (again % 200 >= 150)).all()


def test_production_curve() -> None:
    """The packaged ServeGen curve: rates as published, scaled to a mean, cut to a window, and drawn (|z| < 4)."""
    keys = {"process": "curve", "category": "language/m-small", "end_s": 1800.0}
    assert process(**keys).mean_rate_rps == pytest.approx((809.7617 + 789.8667 + 788.4233) / 3, rel=1e-12)
    scaled = {**keys, "rate_rps": 5.0}
    at_s = np.concatenate([times(scaled, 2, r, until_s=1800.0) for r in range(10)])
    shares = np.array([809.7617, 789.8667, 788.4233]) / (809.7617 + 789.8667 + 788.4233)
    assert np.abs(window_z(at_s, np.array([0, 600, 1200, 1800]), 10 * 9000 * shares)).max() < 4
    whole = process(process="curve", category="reason/deepseek-r1")
    assert whole.ends_s == 86_400  # type: ignore[attr-defined] # a curve


def test_curve_in_a_file_of_ones_own(tmp_path: Path) -> None:
    """Any file with the three columns is accepted; errors name the file and what it has."""
    (tmp_path / "c.csv").write_text("category,window_start_s,total_rate_rps\na,0,1\na,10,3\nb,0,5\n")
    keys = {"process": "curve", "path": "c.csv"}
    assert process(tmp_path, **keys, category="a").mean_rate_rps == 2
    with pytest.raises(InputError, match=r"^category: c\.csv: unknown curve '.*'; did you mean 'a'\? known: a, b"):
        process(tmp_path, **keys, category="A")
    with pytest.raises(InputError, match="category 'b' needs two or more windows"):
        process(tmp_path, **keys, category="b")
    with pytest.raises(InputError, match="start_s 30 to end_s 20 is not inside the curve 'a'"):
        process(tmp_path, **keys, category="a", start_s=30.0)


def test_batches_are_compound_poisson() -> None:
    """Groups of mean size 4: counts in a window have mean rate t and variance rate t E[B²]/E[B] (|z| < 4)."""
    keys = {"process": "batches", "rate_rps": 20.0, "batch_size": {"distribution": "geometric", "mean": 4.0}}
    this = process(**keys)
    assert this.gap_scv == pytest.approx(7, rel=1e-12)
    assert this.dispersion == pytest.approx((12 + 16) / 4, rel=1e-9)
    counts = window_counts(keys, 1, 50.0, 500)
    assert abs(counts.mean() - 1000) < 4 * math.sqrt(7 * 1000 / 500)
    assert abs(counts.var() / 1000 - 7) < 4 * 7 * math.sqrt(2.1 / 500)
    gaps = np.diff(times(keys, 2, num_requests=100_000))
    assert abs((gaps == 0).mean() - 3 / 4) < 4 * math.sqrt(0.75 * 0.25 / 100_000) * 2
    assert len(times(keys, 3, num_requests=7)) == 7


def test_ramp_follows_the_number_of_the_request() -> None:
    """Evenly spaced ramps have the gaps 1/rate that vLLM's formulas give for request i of n."""
    linear = {"process": "ramp", "from_rps": 1.0, "to_rps": 5.0, "burstiness": "inf"}
    assert np.diff(times(linear, num_requests=5), prepend=0.0) == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5])
    doubling = {"process": "ramp", "from_rps": 1.0, "to_rps": 16.0, "shape": "exponential", "burstiness": "inf"}
    assert np.diff(times(doubling, num_requests=5), prepend=0.0) == pytest.approx([1, 1 / 2, 1 / 4, 1 / 8, 1 / 16])
    random = times({"process": "ramp", "from_rps": 10.0, "to_rps": 40.0}, 7, num_requests=20_000)
    units = np.diff(random, prepend=0.0) * np.linspace(10, 40, 20_000)
    assert stats.kstest(units, "expon").pvalue > 0.001


EVERY = [
    {"process": "gamma", "rate_rps": 50.0, "cv": 2.0},
    {"process": "weibull", "rate_rps": 50.0, "cv": 2.0},
    {"process": "on_off", "rate_rps": 50.0, "peak_to_mean": 4.0, "mean_burst_s": 1.0},
    {"process": "mmpp", "rate_rps": 50.0, "peak_to_mean": 4.0, "mean_burst_s": 1.0, "calm_to_mean": 0.3},
    {"process": "sinusoid", "rate_rps": 50.0, "amplitude": 0.5, "period_s": 30.0},
    {"process": "piecewise", "pieces": PIECES, "repeat": True},
    {"process": "curve", "category": "reason/deepseek-r1", "repeat": True},
    {"process": "batches", "rate_rps": 50.0, "batch_size": {"distribution": "geometric", "mean": 3.0}},
]


@pytest.mark.parametrize("keys", EVERY, ids=lambda keys: keys["process"])
@pytest.mark.parametrize("n", [1, 65_537, 140_000])
def test_a_shorter_run_is_the_beginning_of_a_longer_one(keys: dict[str, Any], n: int) -> None:
    """For any process: exactly n requests, in order, and the same bits as the first n of more."""
    longest = times(keys, num_requests=150_000)
    shorter = times(keys, num_requests=n)
    assert shorter.tobytes() == longest[:n].tobytes()
    assert (np.diff(shorter) >= 0).all()
    end_s = float(longest[n])
    by_time = times(keys, until_s=end_s)
    assert by_time.tobytes() == longest[longest < end_s].tobytes()


GAMMA = {"process": "gamma", "rate_rps": 1.0}
ON_OFF = {"process": "on_off", "rate_rps": 1.0, "peak_to_mean": 2.0, "mean_burst_s": 1.0}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (GAMMA, "exactly one of cv, burstiness"),
        ({**GAMMA, "cv": 1.0, "burstiness": 1.0}, "exactly one of cv, burstiness"),
        *(({**GAMMA, "cv": bad}, "cv") for bad in (0.0, -1.0, math.nan, math.inf, "2", 1e3)),
        *(({**GAMMA, "burstiness": bad}, "burstiness") for bad in (0.0, -1.0, math.nan, -math.inf, "high", True)),
        *(({**GAMMA, "cv": 1.0, "rate_rps": bad}, "rate_rps") for bad in (0.0, -1.0, math.nan, math.inf)),
        ({"process": "weibull", "rate_rps": 1.0, "cv": 0.0}, "greater than or equal to 0.01"),
        ({**ON_OFF, "peak_to_mean": 1.0}, "greater than 1"),
        ({**ON_OFF, "mean_burst_s": 0.0}, "greater than 0"),
        ({**ON_OFF, "mean_burst_s": 1e-9}, "a mean burst has 2e-09 requests"),
        ({**ON_OFF, "calm_to_mean": 0.5}, "unknown key 'calm_to_mean'"),
        ({**ON_OFF, "process": "mmpp", "calm_to_mean": 1.0}, "less than 1"),
        ({"process": "sinusoid", "rate_rps": 1.0, "amplitude": 1.5, "period_s": 1.0}, "less than or equal to 1"),
        ({"process": "piecewise", "pieces": []}, "at least 1 entry"),
        ({"process": "piecewise", "pieces": [{"for_s": 1.0, "rate_rps": 0.0}]}, "no request would ever arrive"),
        ({"process": "piecewise", "pieces": [{"for_s": 1.0, "rate_rps": -1.0}]}, "greater than or equal to 0"),
        ({"process": "ramp", "from_rps": 0.0, "to_rps": 1.0}, "greater than 0"),
        ({"process": "poisson", "rate_rps": 1.0, "normalise_to_rate": True}, "did you mean 'normalize_to_rate'"),
    ],
    ids=str,
)
def test_impossible_processes_are_rejected(keys: dict[str, Any], said: str) -> None:
    """Case 49 and its kind: impossible keys are an error when they are read, with the key or the reason."""
    with pytest.raises(ValidationError) as caught:
        ADAPTER.validate_python(keys)
    assert said in str(caught.value)


def test_unknown_packaged_curves_are_rejected() -> None:
    """A misspelt category of the packaged curves is an error that gives the nearest one."""
    with pytest.raises(InputError, match=r"did you mean 'language/m-small'\?"):
        process(process="curve", category="language/m-smal")


@pytest.mark.parametrize(
    ("arrivals", "limits", "said"),
    [
        (
            {"process": "ramp", "from_rps": 1.0, "to_rps": 2.0},
            {"arrivals_for_s": 5.0},
            "process ramp needs num_requests",
        ),
        (
            {"process": "poisson", "rate_rps": 1.0, "normalize_to_rate": True},
            {"arrivals_for_s": 5.0, "num_requests": 3},
            "normalize_to_rate needs num_requests and cannot be combined with arrivals_for_s",
        ),
    ],
)
def test_ends_that_do_not_fit_are_rejected(arrivals: dict[str, Any], limits: dict[str, Any], said: str) -> None:
    """A ramp needs a number, a normalized process a number and no time."""
    lengths = {"distribution": "constant", "value": 1}
    with pytest.raises(ValidationError, match=said):
        WorkloadSettings.model_validate(
            {"arrivals": arrivals, **limits, "prompt_tokens": lengths, "output_tokens": lengths}
        )


def test_too_many_arrivals_are_rejected() -> None:
    """A process that needs a number must have one; a typing error in the rate is an error, not a hang."""
    with pytest.raises(InputError, match="arrivals need an end: num_requests"):
        times({"process": "ramp", "from_rps": 1.0, "to_rps": 2.0}, until_s=5.0)
    with pytest.raises(InputError, match=r"1e\+18 requests"):
        times({"process": "sinusoid", "rate_rps": 1e18, "amplitude": 0.0, "period_s": 1.0}, until_s=1.0)
