"""Axes: a key of a scenario and the values that it gets.

Values are a list (``64,128,256``), a range (``4:32:8``: low, high, number of values) or a range from which values are
drawn (``4:32``). Before them can stand ``log:`` for a range that is even in its logarithm, and ``capacity:`` for shares
of the analytic capacity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from simqueue.datafiles.yamlfile import parse_value
from simqueue.errors import InputError, KeyPath, show
from simqueue.printable import is_text
from simqueue.scenario.overrides import parse_key
from simqueue.scenario.plaindata import plain

MOST_VALUES: Final = 100_000
"""Values of one axis, and cells of a design."""
LOG, CAPACITY = "log:", "capacity:"
_NUMBER: Final = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_BEGINS: Final = re.compile(rf"\s*{_NUMBER}\s*:")
_DIGITS: Final = 12
"""Significant digits of the inner values of a logarithmic range: 10, and not 9.999999999999998."""
_RATE: Final = "rate_rps"


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`, as they were written.

    Attributes
    ----------
    low, high : Fraction
    count : int or None
        How many values it has, the ends included; None: values are drawn from it.
    log : bool
        Whether it is even in the logarithm.
    """

    low: Fraction
    high: Fraction
    count: int | None
    log: bool

    def values(self, *, whole: bool) -> tuple[float, ...]:
        """Return the values of a range with a count; `whole` rounds them to whole numbers."""
        if self.count is None:
            raise ValueError("a range without a count")
        return tuple(self._number(Fraction(i, self.count - 1), whole=whole) for i in range(self.count))

    def at(self, share: float, *, whole: bool) -> float:
        """Return the value below which this share of what is drawn lies, 0 <= share < 1.

        If `whole`, each whole number from `low` to `high` is drawn, in a linear range equally often.
        """
        if not whole:
            return self._number(Fraction(share), whole=False)
        low, high = math.ceil(self.low), math.floor(self.high)
        if not self.log:
            return low + math.floor(share * (high - low + 1))
        factor: float = ((high + 1) / low) ** share
        return min(high, math.floor(low * factor))

    @property
    def written(self) -> str:
        """The range as text, which is one again."""
        ends = [f"{float(end):.15g}" if end.denominator > 1 else str(end) for end in (self.low, self.high)]
        return LOG * self.log + ":".join([*ends, *([] if self.count is None else [str(self.count)])])

    def _number(self, share: Fraction, *, whole: bool) -> float:
        if not self.log:
            exact = self.low + share * (self.high - self.low)
        elif share in (0, 1):
            exact = self.high if share else self.low
        else:
            between = math.exp(math.log(self.low) + float(share) * (math.log(self.high) - math.log(self.low)))
            exact = Fraction(f"{between:.{_DIGITS}g}")
        return round(exact) if whole else float(exact)


@dataclass(frozen=True, slots=True)
class Share:
    """A value of an axis that is a share of the analytic capacity of each cell."""

    of_capacity: float


@dataclass(frozen=True, slots=True)
class Axis:
    """A key, and the values that it gets.

    Attributes
    ----------
    key : str
        Dotted; ``*`` stands for every key at its place.
    values : tuple or Range
    of_capacity : bool
        Whether the values are shares of the capacity.
    place : str
        The flag, or file, line and key, where it was written; errors name it.
    """

    key: str
    values: tuple[Any, ...] | Range
    of_capacity: bool
    place: str

    @property
    def path(self) -> KeyPath:
        """The keys down to the value."""
        return parse_key(self.key, self.place)

    @property
    def written(self) -> Any:
        """The values as a list, or as text, which are the same axis again."""
        values = self.values
        if isinstance(values, Range):
            return CAPACITY * self.of_capacity + values.written
        return CAPACITY + ",".join(map(repr, values)) if self.of_capacity else list(values)

    def listed(self, *, whole: bool) -> tuple[Any, ...]:
        """Return the values; those of a range are whole numbers if `whole`.

        Raises
        ------
        InputError
            If it is a range without a count.
        """
        values = self.values
        if isinstance(values, Range):
            if values.count is None:
                raise InputError.at(self.place, "a range needs a number of values, such as 4:32:8")
            values = values.values(whole=whole)
        return tuple(Share(value) for value in values) if self.of_capacity else values

    def drawn(self, share: float, *, whole: bool) -> Any:
        """Return the value at a share of the axis, 0 <= share < 1; values of a list are drawn equally often."""
        values = self.values
        if isinstance(values, Range) and values.count is None:
            value = values.at(share, whole=whole)
            return Share(value) if self.of_capacity else value
        choices = self.listed(whole=whole)
        return choices[math.floor(share * len(choices))]


def parse_axis(text: str, option: str) -> Axis:
    """Return the axis of ``KEY=VALUES`` as given with an option, such as ``--grid``.

    Raises
    ------
    InputError
        If it is not written so.
    """
    place = f"{option} {text}"
    if not is_text(text):
        raise InputError.at(place, "not text in UTF-8")
    key, equals, values = text.partition("=")
    if not equals:
        raise InputError.at(place, "write it as KEY=VALUES, such as workload.arrivals.rate_rps=4:32:8")
    return axis_of(key.strip(), values, place)


def axes_of(values: Mapping[str, Any], option: str) -> tuple[Axis, ...]:
    """Return the axes of a mapping of keys to values, as Python has it; errors name `option`.

    Raises
    ------
    InputError
        If it is none.
    """
    if not isinstance(values, Mapping):
        raise InputError(f"{option}: must be a mapping of keys to values, such as {{'seed': [1, 2]}}")
    return tuple(axis_of(str(key), given, f"{option} {key}") for key, given in values.items())


def axis_of(key: str, values: Any, place: str) -> Axis:
    """Return an axis.

    Parameters
    ----------
    key : str
    values : object
        A text as on the command line, a single value, or a sequence of values.
    place : str
        Where it is written, with the key, for errors.

    Raises
    ------
    InputError
        If there are no values, or they are not written as they must be.
    """
    parse_key(key, place)
    given = plain(list(values) if isinstance(values, range) else values)
    if isinstance(given, dict | set | frozenset):
        kind = "mapping" if isinstance(given, dict) else "set, which has no order"
        raise InputError.at(place, f"must be a list of values or a text such as 4:32:8, not a {kind}")
    of_capacity = isinstance(given, str) and given.strip().startswith(CAPACITY)
    found: tuple[Any, ...] | Range
    if isinstance(given, str):
        found = _parsed(given.strip().removeprefix(CAPACITY) if of_capacity else given, place)
    else:
        found = tuple(given) if isinstance(given, list) else (given,)
    if isinstance(found, tuple) and not 0 < len(found) <= MOST_VALUES:
        many = f"{len(found):,} values; an axis can have up to {MOST_VALUES:,}" if found else "has no values"
        raise InputError.at(place, many)
    _check_front(key, found, place)
    if of_capacity:
        _check_shares(key, found, place)
    return Axis(key, found, of_capacity, place)


def _parsed(text: str, place: str) -> tuple[Any, ...] | Range:
    """Return what is written as a range or as a list."""
    text = text.strip()
    if text.startswith(LOG) or _BEGINS.match(text):
        return _range(text, place)
    if not text:
        return ()
    if text.endswith(","):
        raise InputError.at(place, "a value is missing after the last ','")
    try:
        return tuple(parse_value(f"[{text}]", "--values"))
    except InputError as error:
        raise InputError.at(place, error.problems[0].text) from None


def _range(text: str, place: str) -> Range:
    log = text.startswith(LOG)
    parts = [part.strip() for part in text.removeprefix(LOG).split(":")]
    if len(parts) not in (2, 3):
        raise InputError.at(place, "write a range as LOW:HIGH:COUNT, such as 4:32:8, or LOW:HIGH to draw from")
    low, high = (_fraction(part, place) for part in parts[:2])
    count = _count(parts[2], place) if len(parts) == 3 else None
    if log and min(low, high) <= 0:
        raise InputError.at(place, "the ends of a logarithmic range must be > 0")
    if count is None and low >= high:
        raise InputError.at(place, "values are drawn from LOW to HIGH, and HIGH must be the larger one")
    return Range(low, high, count, log)


def _count(text: str, place: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 2 <= int(text) <= MOST_VALUES):
        raise InputError.at(
            place, f"'{text}' as the number of values: must be a whole number from 2 to {MOST_VALUES:,}"
        )
    return int(text)


def _fraction(text: str, place: str) -> Fraction:
    """Return a number exactly as it was written, so that 0.1:0.5:5 has 0.3 as its third value."""
    number = float(text) if re.fullmatch(_NUMBER, text) else math.nan
    if not math.isfinite(number):
        raise InputError.at(place, f"'{text}' as the end of a range: must be a finite number")
    # an exponent of a million digits is 0 as a float
    return Fraction(text) if number else Fraction(0)


def _check_front(key: str, values: tuple[Any, ...] | Range, place: str) -> None:
    """Raise `InputError` for ``capacity:`` before a later value of a list of rates."""
    if key.rpartition(".")[2] != _RATE or isinstance(values, Range):
        return
    if any(isinstance(value, str) and value.strip().startswith(CAPACITY) for value in values):
        raise InputError.at(place, f"write '{CAPACITY}' once, before all values: the whole list has shares, or none")


def _check_shares(key: str, values: tuple[Any, ...] | Range, place: str) -> None:
    if key.rpartition(".")[2] != _RATE:
        raise InputError.at(place, f"'{CAPACITY}' is for rates of arrivals, whose key ends with {_RATE}")
    ends: Iterator[Any] = iter((values.low, values.high) if isinstance(values, Range) else values)
    wrong = next((end for end in ends if not _is_positive(end)), None)
    if wrong is not None:
        shown = show(float(wrong) if isinstance(wrong, Fraction) else wrong)
        raise InputError.at(place, f"{shown or 'a value'}: a share of the capacity must be a number > 0")


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float | Fraction) and not isinstance(value, bool) and 0 < value < math.inf


def plain_value(value: Any) -> Any:
    """Return a value of an axis as JSON has it."""
    return {"share_of_capacity": value.of_capacity} if isinstance(value, Share) else value
