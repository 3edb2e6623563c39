"""Bounds that only a typing error exceeds."""

from __future__ import annotations

import math

from simqueue.errors import InputError

MOST_TOKENS = 1_000_000_000
"""Largest token count of one request."""

MOST_REQUESTS = 100_000_000
"""Largest number of requests in one workload; more would not fit in memory."""

FIRST_GENERATED_STREAM = 2**32
"""Generated token streams are numbered from here; those written in a scenario are below."""

LONGEST_S = 1e15
"""Latest arrival in seconds; floats could not resolve a step at later times."""

LARGEST_SAMPLE = 1e15
"""Largest length that can be drawn from a distribution without a maximum; whole numbers up to here are exact."""

LARGEST_TABLE = 2_000_000
"""Largest number of values in a table of lengths, twice the longest context of usual models; each needs 70 bytes."""

MOST_PIECES = 20_000_000
"""Largest number of pieces of prompts in all sessions: the prompt of turn n has all earlier turns, 2 n pieces of 16
bytes. A million conversations of four turns have 16 million; one of a thousand turns has a million."""


def most_arrivals(rate_rps: float | None, num_requests: int | None, until_s: float | None) -> int:
    """Return the largest number of arrivals to draw.

    Raises
    ------
    InputError
        If nothing ends the arrivals, if they would take too long, or if there would be too many.
    """
    if num_requests is None and (until_s is None or rate_rps is None):
        raise InputError("arrivals need an end: num_requests, or arrivals_for_s if the process has a rate")
    by_number = math.inf if num_requests is None else num_requests
    if until_s is None and rate_rps is not None:
        _check_duration(by_number, rate_rps)
    by_time = math.inf if until_s is None or rate_rps is None else rate_rps * until_s
    check_number(min(by_number, by_time))
    return 2 * MOST_REQUESTS if num_requests is None else num_requests


def _check_duration(number: float, rate_rps: float) -> None:
    if number / rate_rps > LONGEST_S:
        raise InputError(
            f"{number} requests at {rate_rps:g} per second would take longer than {LONGEST_S:g} s; give a higher rate",
            "rate_rps",
        )


def check_number(expected: float) -> None:
    """Raise InputError if `expected` requests are too many."""
    if expected > MOST_REQUESTS:
        raise InputError(
            f"these settings make {expected:.3g} requests, at most {MOST_REQUESTS} are allowed (num_requests, or "
            "rate_rps times arrivals_for_s)",
            "process",
        )
