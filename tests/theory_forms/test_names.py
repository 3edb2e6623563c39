"""`simqueue.theory` as a package: its functions are names of it."""

from __future__ import annotations

import doctest

import pytest

import simqueue as sq
from simqueue import theory
from simqueue.theory.catalog import FORMULAS


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_every_formula_of_the_command_is_a_name_of_the_package(name: str) -> None:
    """What `simqueue theory NAME` evaluates can be called."""
    assert getattr(theory, name) is FORMULAS[name]
    assert name in dir(theory)


def test_the_example_of_the_package_is_right() -> None:
    """M/M/1 at 0.8: the mean wait is 0.8 / (1 - 0.8), as the docstring shows."""
    assert doctest.testmod(theory).failed == 0


def test_the_package_is_reached_from_simqueue_and_has_no_other_names() -> None:
    """`sq.theory` is the package. What its modules import is not among its names."""
    assert sq.theory is theory
    for name in ("np", "InputError", "nothing", "_number"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(theory, name)
