"""From settings to parts: what is written down becomes arrival processes, length distributions and think times.

The settings are light to import. This module imports everything that needs numpy and scipy, so it is imported only
when requests are made or checked.
"""

from __future__ import annotations

from functools import singledispatch
from pathlib import Path

import numpy as np

from simqueue.errors import inside
from simqueue.settings import Settings
from simqueue.workload.arrivals import settings as arrivals
from simqueue.workload.arrivals.base import ArrivalProcess
from simqueue.workload.arrivals.curves import read_curve
from simqueue.workload.arrivals.grouped import BatchArrivals, RampArrivals
from simqueue.workload.arrivals.modulated import BurstArrivals
from simqueue.workload.arrivals.renewal import GammaArrivals, PoissonArrivals, WeibullArrivals
from simqueue.workload.arrivals.simple import AllAtOnce, ConstantArrivals
from simqueue.workload.arrivals.varying import SinusoidArrivals, TabulatedArrivals
from simqueue.workload.duration_settings import (
    ConstantDurationSettings,
    ExponentialDurationSettings,
    LognormalDurationSettings,
    UniformDurationSettings,
)
from simqueue.workload.durations import (
    ConstantDuration,
    Duration,
    ExponentialDuration,
    LognormalDuration,
    UniformDuration,
)
from simqueue.workload.lengths import settings as lengths
from simqueue.workload.lengths.base import Bounds, LengthDistribution
from simqueue.workload.lengths.heavy import GammaLength, ParetoLength
from simqueue.workload.lengths.mixture import MixtureLength
from simqueue.workload.lengths.simple import ConstantLength, UniformLength
from simqueue.workload.lengths.smooth import ExponentialLength, GeometricLength, LognormalLength
from simqueue.workload.lengths.table import (
    TableLength,
    empirical_table,
    histogram_table,
    read_lengths,
    zipf_table,
)


@singledispatch
def build_lengths(settings: Settings, _base_dir: Path) -> LengthDistribution:
    """Return the length distribution that settings describe.

    Parameters
    ----------
    settings : a class of `simqueue.workload.lengths.settings`
    _base_dir : Path
        The folder that relative paths in the settings start from.

    Raises
    ------
    InputError
        If a file cannot be read or is wrong, or if no length can be drawn inside bounds that are to be resampled.
    """
    raise TypeError(f"{type(settings).__name__} is not a length distribution")


def _bounds(settings: lengths.BoundedLengthSettings) -> Bounds:
    return Bounds(settings.min, settings.max, settings.bounds == "resample")


@build_lengths.register(lengths.ConstantLengthSettings)
def _(settings: lengths.ConstantLengthSettings, _base_dir: Path) -> LengthDistribution:
    return ConstantLength.of(settings.value, _bounds(settings))


@build_lengths.register(lengths.UniformLengthSettings)
def _(settings: lengths.UniformLengthSettings, _base_dir: Path) -> LengthDistribution:
    return UniformLength.of(settings.low, settings.high, _bounds(settings))


@build_lengths.register(lengths.LognormalLengthSettings)
def _(settings: lengths.LognormalLengthSettings, _base_dir: Path) -> LengthDistribution:
    return LognormalLength(_bounds(settings), *settings.mu_and_sigma())


@build_lengths.register(lengths.ExponentialLengthSettings)
def _(settings: lengths.ExponentialLengthSettings, _base_dir: Path) -> LengthDistribution:
    return ExponentialLength(_bounds(settings), settings.mean_tokens)


@build_lengths.register(lengths.GeometricLengthSettings)
def _(settings: lengths.GeometricLengthSettings, _base_dir: Path) -> LengthDistribution:
    return GeometricLength(_bounds(settings), settings.mean_tokens)


@build_lengths.register(lengths.GammaLengthSettings)
def _(settings: lengths.GammaLengthSettings, _base_dir: Path) -> LengthDistribution:
    shape = 1 / settings.cv**2
    return GammaLength(_bounds(settings), shape, settings.mean_tokens / shape)


@build_lengths.register(lengths.ParetoLengthSettings)
def _(settings: lengths.ParetoLengthSettings, _base_dir: Path) -> LengthDistribution:
    return ParetoLength(_bounds(settings), settings.scale, settings.alpha)


@build_lengths.register(lengths.ZipfLengthSettings)
def _(settings: lengths.ZipfLengthSettings, _base_dir: Path) -> LengthDistribution:
    return TableLength.of(zipf_table(settings.exponent, settings.ranks), _bounds(settings))


@build_lengths.register(lengths.HistogramLengthSettings)
def _(settings: lengths.HistogramLengthSettings, _base_dir: Path) -> LengthDistribution:
    return TableLength.of(histogram_table(settings.edges, settings.weights), _bounds(settings))


@build_lengths.register(lengths.EmpiricalLengthSettings)
def _(settings: lengths.EmpiricalLengthSettings, base_dir: Path) -> LengthDistribution:
    if settings.path is not None:
        return TableLength.of(read_lengths(base_dir / settings.path, settings.path), _bounds(settings))
    return TableLength.of(empirical_table(settings.values or (), settings.weights), _bounds(settings))


@build_lengths.register(lengths.MixtureLengthSettings)
def _(settings: lengths.MixtureLengthSettings, base_dir: Path) -> LengthDistribution:
    parts = []
    for number, part in enumerate(settings.components):
        with inside("components", number, "law"):
            parts.append(build_lengths(part.law, base_dir))
    weights = np.array([part.weight for part in settings.components])
    return MixtureLength(parts, np.asarray(weights / weights.sum()))


@singledispatch
def build_arrivals(settings: arrivals.ArrivalProcessSettings, _base_dir: Path) -> ArrivalProcess:
    """Return the arrival process that settings describe.

    Parameters
    ----------
    settings : a class of `simqueue.workload.arrivals.settings`
    _base_dir : Path
        The folder that relative paths in the settings start from.

    Raises
    ------
    InputError
        If a file cannot be read or is wrong, or if no size of a group can be drawn.
    """
    raise TypeError(f"{type(settings).__name__} is not an arrival process")


@build_arrivals.register(arrivals.ConstantArrivalsSettings)
def _(settings: arrivals.ConstantArrivalsSettings, _base_dir: Path) -> ArrivalProcess:
    return ConstantArrivals(settings.rate_rps)


@build_arrivals.register(arrivals.AllAtOnceSettings)
def _(settings: arrivals.AllAtOnceSettings, _base_dir: Path) -> ArrivalProcess:
    return AllAtOnce(settings.at_s)


@build_arrivals.register(arrivals.PoissonArrivalsSettings)
def _(settings: arrivals.PoissonArrivalsSettings, _base_dir: Path) -> ArrivalProcess:
    return PoissonArrivals(settings.rate_rps, settings.normalize_to_rate)


@build_arrivals.register(arrivals.GammaArrivalsSettings)
def _(settings: arrivals.GammaArrivalsSettings, _base_dir: Path) -> ArrivalProcess:
    return GammaArrivals(settings.rate_rps, settings.normalize_to_rate, settings.shape)


@build_arrivals.register(arrivals.WeibullArrivalsSettings)
def _(settings: arrivals.WeibullArrivalsSettings, _base_dir: Path) -> ArrivalProcess:
    return WeibullArrivals(settings.rate_rps, settings.normalize_to_rate, settings.cv)


@build_arrivals.register(arrivals.OnOffArrivalsSettings)
def _(settings: arrivals.OnOffArrivalsSettings, _base_dir: Path) -> ArrivalProcess:
    return BurstArrivals(settings.rate_rps, settings.peak_to_mean, settings.mean_burst_s)


@build_arrivals.register(arrivals.MmppArrivalsSettings)
def _(settings: arrivals.MmppArrivalsSettings, _base_dir: Path) -> ArrivalProcess:
    return BurstArrivals(settings.rate_rps, settings.peak_to_mean, settings.mean_burst_s, settings.calm_to_mean)


@build_arrivals.register(arrivals.SinusoidArrivalsSettings)
def _(settings: arrivals.SinusoidArrivalsSettings, _base_dir: Path) -> ArrivalProcess:
    return SinusoidArrivals(settings.rate_rps, settings.amplitude, settings.period_s, settings.phase_s)


@build_arrivals.register(arrivals.PiecewiseArrivalsSettings)
def _(settings: arrivals.PiecewiseArrivalsSettings, _base_dir: Path) -> ArrivalProcess:
    ends_s = np.add.accumulate(np.array([piece.for_s for piece in settings.pieces]))
    return TabulatedArrivals(ends_s, np.array([piece.rate_rps for piece in settings.pieces]), settings.repeat)


@build_arrivals.register(arrivals.CurveArrivalsSettings)
def _(settings: arrivals.CurveArrivalsSettings, base_dir: Path) -> ArrivalProcess:
    return TabulatedArrivals(*read_curve(settings, base_dir), settings.repeat)


@build_arrivals.register(arrivals.BatchArrivalsSettings)
def _(settings: arrivals.BatchArrivalsSettings, base_dir: Path) -> ArrivalProcess:
    with inside("batch_size"):
        return BatchArrivals(settings.rate_rps, build_lengths(settings.batch_size, base_dir))


@build_arrivals.register(arrivals.RampArrivalsSettings)
def _(settings: arrivals.RampArrivalsSettings, _base_dir: Path) -> ArrivalProcess:
    gaps = GammaArrivals(1.0, shape=float(settings.burstiness))
    return RampArrivals(settings.from_rps, settings.to_rps, settings.shape == "exponential", gaps)


@singledispatch
def build_duration(settings: Settings) -> Duration:
    """Return the distribution of think times that settings describe."""
    raise TypeError(f"{type(settings).__name__} is not a distribution of times")


@build_duration.register(ConstantDurationSettings)
def _(settings: ConstantDurationSettings) -> Duration:
    return ConstantDuration(settings.value_s)


@build_duration.register(UniformDurationSettings)
def _(settings: UniformDurationSettings) -> Duration:
    return UniformDuration(settings.low_s, settings.high_s)


@build_duration.register(ExponentialDurationSettings)
def _(settings: ExponentialDurationSettings) -> Duration:
    return ExponentialDuration(settings.mean_s)


@build_duration.register(LognormalDurationSettings)
def _(settings: LognormalDurationSettings) -> Duration:
    return LognormalDuration(settings.median_s, settings.sigma)
