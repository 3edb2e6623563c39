"""The search for the highest rate at which one policy keeps its conditions.

Few short runs bracket the rate. Then all replications run at the rates that matter: close to the crossing, and where
the interval is expected to end. Runs are made longer until the interval is narrow enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from simqueue.decisions.budget import BudgetSpentError
from simqueue.decisions.crossing import Crossing, Margins, crossing, falls, proposal
from simqueue.decisions.margins import margins
from simqueue.decisions.saturation import StableRate
from simqueue.decisions.trials import Point, Size, Trials
from simqueue.statistics.verdict import LAW_ERROR

REPLICATIONS: Final = 10
NO_RATE: Final = "no rate meets the conditions"
UNDECIDED: Final = "not known whether any rate meets the conditions"
NO_LIMIT: Final = "no limit is reached"
_FEW: Final = 2
"""Replications while the rate is bracketed."""
_NEAR: Final = 1.1
"""Factor between both ends of a bracket from which on all replications are worth it."""
_HALVINGS: Final = 16
_MOST_LOOKS: Final = 14
"""Rates that are looked at in one stage, at most."""
_SMALLEST_GROWTH, _LARGEST_GROWTH = 2.0, 6.0
_LONGER: Final = 2
"""By so many times longer runs it is checked whether runs are long enough."""
_MOST_LENGTHENED: Final = 3
_MOST_GROWTH: Final = 64
"""Largest size of the runs at one rate over that of the first ones."""
LONGEST: Final = f"longest runs ({_MOST_GROWTH} times the first)"
_OF_THE_LAW: Final = 4
"""Uneven traffic is simulated up to so many times the capacity by the law."""
_DOUBLINGS: Final = 10
"""Without a law, up to so many doublings of the rate."""
_MOST_REQUESTS: Final = 200_000
"""Without a law, no run whose number of requests grows with the rate is longer."""
_MORE: Final = 1.15
"""An interval that is to be narrow enough gets so many times the requests that it seems to need."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How precise the answer has to be.

    Attributes
    ----------
    relative : float
        Largest length of each side of the interval over the rate.
    requests : int
        Of the first runs.
    """

    relative: float
    requests: int


@dataclass
class Found:
    """What a search found.

    Attributes
    ----------
    crossing : Crossing or None
        None: no rate keeps the conditions, or the budget did not suffice to find one.
    size : Size
        Of the runs that the answer is from.
    stable : bool
        Whether the conditions hold up to the stable rate, as far as it can be simulated.
    stopped : str
        Why the search ended.
    lowest : Point or None
        Without an answer: the lowest rate that was tried.
    kept : float or None
        The highest rate at which the conditions are known to hold, in few runs or in all.
    notes : list of str
        What has to be said of it.
    slope : float
        Growth of the margin by the logarithm of the rate, at the answer.
    """

    crossing: Crossing | None
    size: Size
    stable: bool = False
    stopped: str = ""
    lowest: Point | None = None
    kept: float | None = None
    notes: list[str] = field(default_factory=list)
    slope: float = math.inf


class _Stop(Exception):  # noqa: N818 - no error: the search has its answer
    def __init__(self, found: Found) -> None:
        super().__init__()
        self.found = found


class Search:
    """The search of one policy.

    Parameters
    ----------
    trials : Trials
    wanted : Wanted
    stable : StableRate or None
    """

    def __init__(self, trials: Trials, wanted: Wanted, stable: StableRate | None) -> None:
        self._trials, self._wanted, self._stable = trials, wanted, stable
        self._size = Size(wanted.requests, REPLICATIONS if trials.traffic.random else 1)
        self._few = Size(wanted.requests, min(_FEW, self._size.replications))
        self._last: Found | None = None
        self._lengthened = 0

    @property
    def _ceiling(self) -> float:
        """The highest rate that is simulated: nearer to the stable rate, runs and the law cannot be told apart."""
        if self._stable is None or not self._trials.traffic.steady:
            return math.inf
        return min((1 - LAW_ERROR) * self._stable.rate_rps, self._stable.low_rps)

    def run(self) -> Found:
        """Return the answer.

        Raises
        ------
        InputError, RunError
            As `Trials.at`.
        """
        try:
            below, above = self._bracket()
            return self._precise(below, above)
        except _Stop as stop:
            return stop.found
        except BudgetSpentError as error:
            return self._spent(str(error))

    def _margins(self, rate: float, size: Size) -> Margins:
        return margins(self._trials.at(rate, size))

    # -- a bracket -----------------------------------------------------------------------------------------------------

    def _bracket(self) -> tuple[float, float]:
        """Return a rate that seems to keep the conditions, and one that does not, not far from each other."""
        ceiling, trials = self._ceiling, self._trials
        rate = trials.traffic.rate_rps if math.isinf(ceiling) else 0.5 * ceiling
        here = self._margins(rate, self._few)
        if here.value > 0:
            return self._narrowed(self._down(rate), here)
        below = here
        while below.rate_rps < ceiling:
            rate = self._higher(below, 2) if math.isinf(ceiling) else _towards(below.rate_rps, ceiling)
            here = self._margins(rate, self._few)
            if here.value > 0:
                return self._narrowed(below, here)
            below = here
        return below.rate_rps / _NEAR, below.rate_rps

    def _down(self, rate: float) -> Margins:
        lowest = rate
        for _ in range(_HALVINGS):
            lowest /= 2
            here = self._margins(lowest, self._few)
            if here.value <= 0:
                return here
        here = self._margins(lowest, self._size)
        if here.value > 0:
            raise self._nothing(here)
        return here

    def _nothing(self, lowest: Margins) -> _Stop:
        """Return that no rate meets the conditions; whether one does is not known if an interval holds the limit."""
        point = self._trials.at(lowest.rate_rps, self._size)
        return _Stop(Found(None, self._size, stopped=NO_RATE if lowest.low > 0 else UNDECIDED, lowest=point))

    def _higher(self, here: Margins, step: float) -> float:
        """Return a higher rate where no stable rate is known; the search ends if that would lead nowhere."""
        own, law_rps = self._trials.traffic.rate_rps, self._trials.law_rps
        top = 2**_DOUBLINGS * own if law_rps is None else max(own, _OF_THE_LAW * law_rps)
        rate = min(step * here.rate_rps, top)
        if here.rate_rps >= top or (law_rps is None and self._many(here.rate_rps, rate)):
            raise _Stop(Found(None, self._few, stopped=NO_LIMIT, kept=here.rate_rps))
        return rate

    def _many(self, rate: float, higher: float) -> bool:
        """Return whether runs at a higher rate have too many requests, because their number grows with the rate."""
        points = [point for (_, size), point in self._trials.points.items() if size == self._few]
        numbers = {point.rate_rps: int(point.row["n_requests"] or 0) / self._few.replications for point in points}
        grows = numbers.get(rate, 0) > numbers[min(numbers)]
        return grows and numbers[rate] * higher / rate > _MOST_REQUESTS

    def _narrowed(self, below: Margins, above: Margins) -> tuple[float, float]:
        while above.rate_rps > _NEAR * below.rate_rps:
            here = self._margins(proposal(below, above), self._few)
            below, above = (below, here) if here.value > 0 else (here, above)
        return below.rate_rps, above.rate_rps

    # -- all replications ----------------------------------------------------------------------------------------------

    def _precise(self, low: float, high: float) -> Found:
        """Return the answer once its interval is narrow enough; runs get longer, or more, until it is."""
        while True:
            before, found = self._last, self._stage(low, high)
            self._last = found
            at = found.crossing
            if not self._trials.traffic.random:
                return found
            vague = self._vague(found)
            if not vague and not (self._trials.traffic.steady and self._too_short(found, before)):
                return found
            if self._largest:
                found.stopped = LONGEST
                return found
            if vague:
                self._grow(math.inf if at is None else at.relative)
            else:
                self._lengthen()
            if at is not None and at.low_rps is not None and at.high_rps is not None:
                low, high = at.low_rps, at.high_rps

    def _vague(self, found: Found) -> bool:
        """Return whether an interval is too wide, or cannot be trusted yet."""
        if found.crossing is not None:
            return found.crossing.relative > self._wanted.relative or self._doubtful(found.crossing.rate_rps)
        return self._trials.traffic.steady and not self._trials.conditions.bounded and self._doubtful(self._ceiling)

    @property
    def _largest(self) -> bool:
        """Whether runs have grown as far as they may."""
        size, first = self._size, self._wanted.requests * REPLICATIONS
        return size.requests * size.replications >= _MOST_GROWTH * first

    def _doubtful(self, rate: float) -> bool:
        """Return whether the runs next to the answer are too few for their intervals."""
        points = [point for (_, size), point in self._trials.points.items() if size == self._size]
        return bool(min(points, key=lambda point: abs(math.log(point.rate_rps / rate))).doubtful)

    def _too_short(self, found: Found, before: Found | None) -> bool:
        """Return whether runs have to be longer, because longer ones move the answer by more than its interval.

        After some tries, the answer says so instead.
        """
        if not self._moves(found, before):
            return False
        if self._lengthened < _MOST_LENGTHENED:
            return True
        found.notes.append(
            "runs are short: with longer ones the answer moves by more than its interval; ask for more requests"
        )
        return False

    def _moves(self, found: Found, before: Found | None) -> bool:
        """Return whether longer runs move an answer by more than its interval.

        The bias of short runs falls with their length, and an interval with the root of it. So an answer that was in
        the interval of shorter runs is from runs that are long enough.
        """
        at, size = found.crossing, self._size
        longer = replace(size, requests=_LONGER * size.requests)
        if at is None:
            return self._margins(self._ceiling, longer).value > 0
        if before is not None and before.crossing is not None and before.size.requests < size.requests:
            return not before.crossing.holds(at.rate_rps)
        here = self._margins(at.rate_rps, longer)
        if math.isinf(found.slope):  # next to the end of the steady state, no distance follows from a margin
            return here.low > 0
        return not at.holds(math.exp(-here.value / found.slope) * at.rate_rps)

    def _lengthen(self) -> None:
        self._lengthened += 1
        self._size = replace(self._size, requests=_LONGER * self._size.requests)

    def _grow(self, relative: float) -> None:
        ratio = min(_LARGEST_GROWTH, (relative / self._wanted.relative) ** 2 * _MORE)
        size, factor = self._size, max(_SMALLEST_GROWTH, ratio)
        factor = min(factor, _MOST_GROWTH * self._wanted.requests * REPLICATIONS / (size.requests * size.replications))
        if self._trials.traffic.steady:
            self._size = replace(size, requests=math.ceil(factor * size.requests))
        else:
            self._size = replace(size, replications=math.ceil(factor * size.replications))

    def _stage(self, low: float, high: float) -> Found:
        """Return the answer of runs of the present size, from a bracket that may be wrong."""
        looked: dict[float, Margins] = {}

        def look(rate: float) -> Margins:
            looked[rate] = self._margins(rate, self._size)
            return looked[rate]

        below, above = self._checked(look, low, high)
        if above.value <= 0:
            return self._up_to_the_ceiling(look, below, above)
        tolerance = 1 + self._wanted.relative
        while above.rate_rps > tolerance * below.rate_rps and len(looked) < _MOST_LOOKS:
            here = look(proposal(below, above))
            below, above = (below, here) if here.value > 0 else (here, above)
        if self._trials.traffic.random:
            _ends(look, looked, below, above, self._ceiling)
        return self._answer(list(looked.values()), below, above)

    def _checked(self, look: Callable[[float], Margins], low: float, high: float) -> tuple[Margins, Margins]:
        """Return two rates of which the first keeps the conditions and the second does not."""
        below, above, step = look(low), None, _NEAR
        while below.value > 0:
            if step > 2**_HALVINGS:
                raise self._nothing(below)
            above, below = below, look(below.rate_rps / step)
            step *= step
        above, step = above or look(min(high, self._ceiling)), _NEAR
        while above.value <= 0 and above.rate_rps < self._ceiling:
            rate = above.rate_rps * step if math.isfinite(self._ceiling) else self._higher(above, step)
            below, above = above, look(min(rate, self._ceiling))
            step *= step
        return below, above

    def _up_to_the_ceiling(self, look: Callable[[float], Margins], below: Margins, top: Margins) -> Found:
        """Return that the conditions hold at the highest rate that is simulated, and where they surely do."""
        kept, step = top, 1 + self._wanted.relative
        while kept.high > 0 and kept.rate_rps > below.rate_rps / _NEAR:
            kept = look(kept.rate_rps / step)
        return Found(None, self._size, stable=True, stopped="precision", kept=kept.rate_rps)

    def _answer(self, points: list[Margins], below: Margins, above: Margins) -> Found:
        at = crossing(points)
        if at is None:  # values that fall again: the crossing between the rates that were searched
            at = crossing([below, above])
        notes = []
        if falls(points):
            notes.append(
                "the values do not get worse with every higher rate; the answer is the lowest rate at which a limit "
                "is crossed"
            )
        if not self._trials.traffic.random and at is not None:
            at = Crossing(at.rate_rps, below.rate_rps, above.rate_rps)
        found = Found(at, self._size, stopped="precision", kept=below.rate_rps, notes=notes)
        found.slope = (above.value - below.value) / math.log(above.rate_rps / below.rate_rps)
        return found

    def _spent(self, stopped: str) -> Found:
        """Return what is known when the budget is spent: the last complete stage, or a bracket of few runs."""
        if self._last is not None:
            self._last.stopped = stopped
            return self._last
        known = [margins(point) for (_, size), point in self._trials.points.items() if size == self._few]
        found = crossing(known)
        kept = max((one.rate_rps for one in known if one.value <= 0), default=None)
        return Found(found, self._few, stopped=stopped, kept=kept, notes=[f"only {_FEW} runs were made at each rate"])


def _towards(rate: float, ceiling: float) -> float:
    """Return a rate half as far from the highest one; that one itself, if it is near."""
    following = (rate + ceiling) / 2
    return ceiling if ceiling < 1.05 * following else following


def _ends(
    look: Callable[[float], Margins], looked: dict[float, Margins], below: Margins, above: Margins, ceiling: float
) -> None:
    """Look where the interval of the crossing is expected to end, and further out until it does."""
    at = crossing([below, above])
    if at is None:
        return
    slope = (above.value - below.value) / math.log(above.rate_rps / below.rate_rps)
    for side in (-1, 1):
        width = below.high - below.value if side < 0 else below.value - below.low
        share = 0.0 if math.isinf(slope) else max(width, 1e-3) / slope
        for _ in range(6):
            ordered = sorted(looked.values(), key=lambda one: one.rate_rps)
            if ordered[0].high <= 0 if side < 0 else any(one.low > 0 for one in ordered):
                break
            edge = ordered[0].rate_rps if side < 0 else ordered[-1].rate_rps
            rate = min(edge * math.exp(side * max(share, 0.002)), ceiling)
            if rate in looked:
                break
            look(rate)
            share *= 1.6
