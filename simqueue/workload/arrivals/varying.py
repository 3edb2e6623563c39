"""Poisson arrivals whose rate follows a curve: a sinusoid, pieces, or a table in a file.

Times are made by thinning (Lewis and Shedler 1979): candidates come at the highest rate, and one at time t stays with
probability rate(t) / highest rate. A candidate takes two uniform numbers. A curve that ends is never continued by
itself: asking for requests beyond its end is an error, unless it says ``repeat: true``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from simqueue.errors import InputError, naming
from simqueue.names import unknown
from simqueue.settings import Settings, invalid
from simqueue.workload.arrivals.base import (
    AT_ONCE,
    RATE_UNIT,
    SECONDS_UNIT,
    ArrivalProcess,
    before,
    refuse_too_many,
    running_sum,
    unit_exponentials,
)

if TYPE_CHECKING:
    import numpy as np

    from simqueue.workload.arrivals.base import Floats, Times


class VaryingProcess(ArrivalProcess):
    """A Poisson process with a rate that changes with time."""

    @property
    def gap_scv(self) -> float | None:
        """Undefined: gaps have different laws at different times."""
        return None

    @property
    def dispersion(self) -> float | None:
        """Undefined: counts have different laws in different windows."""
        return None

    @property
    @abstractmethod
    def mean_rate_rps(self) -> float:
        """Arrivals per second over one period, or over the whole curve."""

    @property
    @abstractmethod
    def peak_rate_rps(self) -> float:
        """The highest rate of the curve."""

    @property
    def ends_s(self) -> float:
        """When the curve ends; infinity if it goes on."""
        return math.inf

    @abstractmethod
    def rates_rps(self, time_s: Times) -> Floats:
        """Return the rate at each time; 0 after the end."""

    def check(
        self, rng: Callable[[], np.random.Generator], *, num_requests: int | None = None, until_s: float | None = None
    ) -> None:
        """Draw them if the curve ends: only then it is known whether enough come before."""
        self._most(num_requests, until_s)
        if math.isfinite(self.ends_s):
            self.times(rng(), num_requests=num_requests, until_s=until_s)

    def _most(self, num_requests: int | None, until_s: float | None) -> int:
        """Check also how many candidates are needed; see `ArrivalProcess`."""
        limit, peak = super()._most(num_requests, until_s), self.peak_rate_rps
        refuse_too_many((num_requests or 0) * peak / self.mean_rate_rps if until_s is None else peak * until_s)
        return limit

    def times(
        self, rng: np.random.Generator, *, num_requests: int | None = None, until_s: float | None = None
    ) -> Times:
        """Return arrival times in seconds; see `ArrivalProcess.times`."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        peak = self.peak_rate_rps
        self._most(num_requests, until_s)
        stop_s = min(self.ends_s, math.inf if until_s is None else until_s)
        pieces: list[Times] = [np.empty(0)]
        made, last_s = 0, 0.0
        while last_s < stop_s and (num_requests is None or made < num_requests):
            uniforms = rng.random((AT_ONCE, 2))
            candidates = running_sum(last_s, unit_exponentials(uniforms[:, 0]) / peak)
            pieces.append(candidates[uniforms[:, 1] * peak < self.rates_rps(candidates)])
            made += len(pieces[-1])
            last_s = float(candidates[-1])
        times = before(np.concatenate(pieces), None if stop_s == math.inf else stop_s)
        return self._enough(times, num_requests, until_s)

    def _enough(self, times: Times, num_requests: int | None, until_s: float | None) -> Times:
        """Cut at the number asked for, refusing to give fewer because the curve has ended."""
        if num_requests is not None and len(times) >= num_requests:
            return times[:num_requests]
        if until_s is None or until_s > self.ends_s:
            asked = f"{num_requests} requests are" if until_s is None else f"arrivals for {until_s:g} s are"
            raise InputError(
                f"{asked} asked for, the rate curve ends after {self.ends_s:g} s with {len(times)} requests; "
                "give less, or repeat: true",
                "process",
            )
        return times


class SinusoidArrivals(VaryingProcess):
    """The rate swings around its mean: rate_rps (1 + amplitude sin(2 pi (t - phase_s) / period_s))."""

    process: Literal["sinusoid"] = Field(description="Poisson with a rate that swings like a sine (day and night).")
    rate_rps: float = Field(gt=0, description="Mean arrival rate over a period.", json_schema_extra=RATE_UNIT)
    amplitude: float = Field(ge=0, le=1, description="Swing, as a share of the mean: 1 reaches down to 0.")
    period_s: float = Field(gt=0, description="Length of a period.", json_schema_extra=SECONDS_UNIT)
    phase_s: float = Field(
        default=0.0, description="When the rate rises through its mean.", json_schema_extra=SECONDS_UNIT
    )

    @property
    def mean_rate_rps(self) -> float:
        """Arrivals per second over a period."""
        return self.rate_rps

    @property
    def peak_rate_rps(self) -> float:
        """The highest rate of the curve."""
        return self.rate_rps * (1 + self.amplitude)

    def rates_rps(self, time_s: Times) -> Floats:
        """Return the rate at each time."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        angle = 2 * np.pi * ((time_s - self.phase_s) / self.period_s)
        return np.asarray(self.rate_rps * (1 + self.amplitude * np.sin(angle)))


class TabulatedProcess(VaryingProcess):
    """The rate is constant in each of several pieces of time."""

    repeat: bool = Field(default=False, description="Start over at the end of the curve; else arrivals end there.")

    @abstractmethod
    def _table(self) -> tuple[Floats, Floats]:
        """Return the ends of the pieces in seconds, ascending, and their rates."""

    @property
    def mean_rate_rps(self) -> float:
        """Arrivals per second over the whole curve."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        ends_s, rates = self._table()
        return float(np.diff(ends_s, prepend=0.0) @ rates / ends_s[-1])

    @property
    def peak_rate_rps(self) -> float:
        """The highest rate of the curve."""
        return float(self._table()[1].max())

    @property
    def ends_s(self) -> float:
        """When the curve ends; infinity if it starts over."""
        return math.inf if self.repeat else float(self._table()[0][-1])

    def rates_rps(self, time_s: Times) -> Floats:
        """Return the rate at each time; 0 after the end."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        ends_s, rates = self._table()
        since_s = np.mod(time_s, ends_s[-1]) if self.repeat else time_s
        return np.append(rates, 0.0)[np.searchsorted(ends_s, since_s, side="right")]


class Piece(Settings):
    """A piece of time with one rate."""

    for_s: float = Field(gt=0, description="How long it lasts.", json_schema_extra=SECONDS_UNIT)
    rate_rps: float = Field(ge=0, description="Arrival rate meanwhile; 0: nobody.", json_schema_extra=RATE_UNIT)


class PiecewiseArrivals(TabulatedProcess):
    """The rate is written down piece by piece."""

    process: Literal["piecewise"] = Field(description="Poisson with a rate given for one piece of time after another.")
    pieces: tuple[Piece, ...] = Field(strict=False, description="The pieces, from time 0 on.")

    @model_validator(mode="after")
    def _somebody_comes(self) -> Self:
        if not self.pieces:
            raise invalid("pieces must have at least 1 entry")
        if self.peak_rate_rps == 0:
            raise invalid("every rate_rps of the pieces is 0: nobody would ever arrive")
        return self

    def _table(self) -> tuple[Floats, Floats]:
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        lengths_s = np.array([piece.for_s for piece in self.pieces])
        return np.add.accumulate(lengths_s), np.array([piece.rate_rps for piece in self.pieces])


CURVES = Path(__file__).parent.parent / "traces" / "data" / "servegen_rate_10min.csv"
"""The packaged curves: production rates summed over clients, from ServeGen (see the README beside the file)."""

CURVES_SHA256 = "f1cf8f2700b4a99e0f054e9f397a1fd6c012f5aab626eb7dc582ade6f929864b"
"""What that file must be."""


class CurveArrivals(TabulatedProcess):
    """The rate is read from a file with columns category, window_start_s, total_rate_rps (as the packaged one)."""

    process: Literal["curve"] = Field(description="Poisson with a rate read from a file, such as a production curve.")
    category: str = Field(
        description="Which curve of the file; packaged: language/m-small, language/m-mid, language/m-large (two weeks) "
        "and reason/deepseek-r1 (a day), in windows of 10 minutes."
    )
    path: str | None = Field(
        default=None, description="The file, relative to the scenario file; null: the packaged ServeGen curves."
    )
    start_s: float = Field(
        default=0.0, ge=0, description="Where in the curve time 0 is.", json_schema_extra=SECONDS_UNIT
    )
    end_s: float | None = Field(
        default=None, gt=0, description="Where in the curve to end; null: at its end.", json_schema_extra=SECONDS_UNIT
    )
    rate_rps: float | None = Field(
        default=None,
        gt=0,
        description="Scale the part of the curve that is used to this mean rate; null: the rates as they are.",
        json_schema_extra=RATE_UNIT,
    )
    _read: tuple[Floats, Floats] | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _window(self) -> Self:
        if self.end_s is not None and self.end_s <= self.start_s:
            raise invalid(f"must be after start_s, which is {self.start_s:g}", "end_s", value=self.end_s)
        if self.path is None and self.category not in categories(CURVES):
            raise invalid(unknown("curve", self.category, categories(CURVES)), "category")
        return self

    def resolved(self, base_dir: Path) -> Self:
        """Return the process with its curve read.

        Raises
        ------
        InputError
            If the file is not such a table, has no such category, or has nothing in the window.
        """
        file, label = (CURVES, "servegen curves") if self.path is None else (base_dir / self.path, self.path)
        with naming("path"):
            starts_s, rates = _read_curve(file, label, self.category)
        chosen = self.model_copy()
        chosen._read = self._cut(starts_s, rates, label)
        return chosen

    def _cut(self, starts_s: Floats, rates: Floats, label: str) -> tuple[Floats, Floats]:
        """Return ends and rates of the windows used, counted from start_s."""
        import numpy as np  # noqa: PLC0415  (settings stay light to import)

        # The last window is as long as the one before it: the table says only where it starts.
        ends_s = np.append(starts_s[1:], 2 * starts_s[-1] - starts_s[-2])
        end_s = ends_s[-1] if self.end_s is None else self.end_s
        if self.start_s < starts_s[0] or end_s > ends_s[-1] or self.start_s >= end_s:
            raise InputError(
                f"start_s {self.start_s:g} to end_s {end_s:g} is not inside the curve '{self.category}' of {label}, "
                f"which reaches from {starts_s[0]:g} to {ends_s[-1]:g} s",
                "end_s" if self.start_s >= starts_s[0] and self.end_s is not None else "start_s",
            )
        used = (ends_s > self.start_s) & (starts_s < end_s)
        ends_s, rates = np.minimum(ends_s[used], end_s) - self.start_s, rates[used]
        mean = float(np.diff(ends_s, prepend=0.0) @ rates / ends_s[-1])
        if mean == 0:
            raise InputError(f"the curve '{self.category}' of {label} is 0 all over the part that is used", "category")
        return ends_s, rates if self.rate_rps is None else rates * (self.rate_rps / mean)

    def _table(self) -> tuple[Floats, Floats]:
        if self._read is None:
            raise InputError(f"arrivals: the curve '{self.category}' is asked for before its file has been read")
        return self._read


def categories(file: Path) -> list[str]:
    """Return the names of the curves in a file, in its order."""
    from simqueue.workload.traces.table import read_table  # noqa: PLC0415  (settings stay light to import)

    return list(dict.fromkeys(read_table(file, file.name).text("category")))


def _read_curve(file: Path, label: str, category: str) -> tuple[Floats, Floats]:
    import numpy as np  # noqa: PLC0415  (settings stay light to import)

    from simqueue.workload.traces.table import read_table  # noqa: PLC0415  (same)

    table = read_table(file, label)
    names = table.text("category")
    if category not in names:
        raise InputError(f"{label}: {unknown('curve', category, dict.fromkeys(names))}", "category")
    mine = np.array([name == category for name in names])
    starts_s = table.floats("window_start_s", least=0)[mine]
    rates = table.floats("total_rate_rps", least=0)[mine]
    if len(starts_s) < 2 or not (np.diff(starts_s) > 0).all():
        text = f"{label}: category '{category}' needs two or more windows in order of window_start_s"
        raise InputError(text, "category")
    return starts_s, rates
