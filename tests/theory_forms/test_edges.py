"""Every form of the catalogue at the edges of every parameter: right, `inf`, or an error that names the range."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.errors import InputError
from simqueue.theory.catalog import FORMULAS, evaluate, parameters
from tests.helpers.profiles import examples
from tests.theory_forms.oracles import ORACLES

LIMIT_S = 1.0
BELOW_1 = 1 - 2.0**-53
ANY = (0, -1.0, 5e-324, 1e-30, 1e-9, 1e-3, 1.0, 1e3, 1e9, 1e30, 1e308, math.inf, -math.inf, math.nan, 10**400)
SHARES = (0.0, 5e-324, 1e-9, 0.5, 0.9, 0.99, 0.9999, 1 - 1e-12, BELOW_1, 1.0, 1.5, math.nan, -math.inf)
WHOLE = (0, -1, 1, 2, 100, 10**6, 10**7 + 1, 10**9, 10**9 + 1, 10**30, 10**400, 2.5, math.nan, math.inf)
TIMES = (
    -1.0,
    0.0,
    5e-324,
    0.5,
    BELOW_1,
    1.0,
    2.0999999999999996,
    7.0,
    19.9,
    20.1,
    59.0,
    1e6,
    1e308,
    math.inf,
    math.nan,
    10**400,
)

BASE: dict[str, float] = {
    "arrival_rate": 0.75,
    "service_rate": 1.0,
    "mean_service_s": 1.0,
    "service_s": 1.0,
    "second_moment_s2": 2.0,
    "third_moment_s3": 6.0,
    "gap_variance_s2": 1.0,
    "service_variance_s2": 1.0,
    "gap_scv": 4.0,
    "service_scv": 0.5,
    "p": 0.99,
    "t_s": 1.5,
    "servers": 4,
    "offered_load": 0.75,
    "room": 5,
    "burstiness": 0.25,
    "choices": 2,
    "length": 3,
    "most": 4,
    "batch": 8,
    "slots": 4,
    "mean_output_tokens": 10.0,
    "step_s": 0.1,
    "overhead_s": 0.02,
    "per_decode_s": 0.01,
}
OF_ITS_OWN = {"free_slots": {"arrival_rate": 20.0}}
SERVERS = ("servers", "slots", "most")
WORK = ("mean_service_s", "service_s", "mean_output_tokens", "per_decode_s", "step_s")
"""Parameters that the arrival rate is multiplied by; `service_s` beside a mean is that of one job."""


def base(name: str) -> dict[str, float]:
    """Return a point well inside the range of a formula."""
    return {key: BASE[key] for key in parameters(FORMULAS[name])} | OF_ITS_OWN.get(name, {})


def edges(key: str, kind: str) -> tuple[float, ...]:
    """Return the values of a parameter that are tried."""
    if kind.startswith("int"):
        return WHOLE
    return {"p": SHARES, "t_s": TIMES}.get(key, ANY)


def just_stable(name: str, given: dict[str, float]) -> Iterator[float]:
    """Return arrival rates (or offered loads): the highest stable one, and two that are a bit lower."""
    servers = math.prod((Fraction(given[key]) for key in SERVERS if key in given), start=Fraction(1))
    of_work = [key for key in WORK if key in given and (key, name) != ("service_s", "ps_mean_sojourn")]
    work = math.prod((Fraction(given[key]) for key in of_work), start=Fraction(1))
    if "service_rate" in given:
        work /= Fraction(given["service_rate"])
    limit = servers / work
    highest = float(limit)
    while Fraction(highest) >= limit:
        highest = math.nextafter(highest, 0)
    yield from (highest, highest * (1 - 1e-12), highest * (1 - 1e-6))


def check(name: str, given: dict[str, Any]) -> bool:
    """Check one point: in time, and right, infinite or refused in words. Return whether there was an answer."""
    began = time.process_time()
    try:
        found = evaluate(name, given)
    except InputError as error:
        text = str(error)
        assert any(key in text for key in given), text
        assert any(word in text for word in ("must be", "at most", "lower")), text
        return False
    finally:
        assert time.process_time() - began < LIMIT_S
    kinds = parameters(FORMULAS[name])
    exact = {key: int(value) if kinds[key].startswith("int") else mp.mpf(value) for key, value in given.items()}
    wanted = ORACLES[name](**exact)
    scale = wanted.pop("scale", 0)
    if "busy_share x mean_batch" in wanted:
        found["busy_share x mean_batch"] = found["busy_share"] * found["mean_batch"]
    assert not any(math.isnan(value) for value in found.values())
    for key, value in wanted.items():
        close = abs(found[key] - value) <= 1e-9 * abs(value) + 1e-10 * scale + 1e-300
        assert close or found[key] == value, f"{key}: {found[key]!r} instead of {mp.nstr(value, 17)}"
    return True


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Load SciPy before times are taken."""
    evaluate("md1_wait_quantile", base("md1_wait_quantile"))


def test_every_form_has_an_independent_value() -> None:
    """No form of the catalogue is without one, and each is right at the point that the edges start from."""
    assert set(ORACLES) == set(FORMULAS)
    assert all(check(name, base(name)) for name in FORMULAS)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_every_form_is_right_or_refuses_at_the_edges_of_each_parameter(name: str) -> None:
    """0, tiny, huge, infinite, no number, beyond the integers of arrays: never an exception, NaN, or a second."""
    kinds = parameters(FORMULAS[name])
    answers = [check(name, base(name) | {key: value}) for key in kinds for value in edges(key, kinds[key])]
    assert any(answers)
    assert not all(answers)


WITH_A_LOAD = [
    name
    for name in sorted(FORMULAS)
    if {"arrival_rate", "offered_load"} & set(parameters(FORMULAS[name]))
    and name not in {"erlang_b", "mm1k", "free_slots"}
]


@pytest.mark.parametrize("name", WITH_A_LOAD)
def test_every_form_is_right_next_to_saturation(name: str) -> None:
    """At the highest stable rate that a number can say, and where times would be lost in 1 - load."""
    for service in (1.0, 0.7):
        point = base(name)
        point |= {key: service for key in ("mean_service_s", "service_s") if key in point}
        key = "arrival_rate" if "arrival_rate" in point else "offered_load"
        for rate in just_stable(name, point):
            answered = check(name, point | {key: rate})
            assert answered or name == "slotted_continuous"  # whose chain then has too many states
        assert not check(name, point | {key: math.nextafter(next(just_stable(name, point)), math.inf)})


@examples(30, thorough=100)
@given(st.data())
def test_edges_of_several_parameters_at_once(data: st.DataObject) -> None:
    """Any combination of edges is right, infinite or refused."""
    name = data.draw(st.sampled_from(sorted(FORMULAS)))
    point = base(name)
    for key, kind in parameters(FORMULAS[name]).items():
        point[key] = data.draw(st.sampled_from((point[key], *edges(key, kind))))
    check(name, point)
