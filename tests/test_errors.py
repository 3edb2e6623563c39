"""Problems and errors: paths, values, places, one line each."""

from __future__ import annotations

from copy import deepcopy

import pytest
from pydantic import ValidationError, model_validator

from simqueue.errors import FileError, InputError, Problem, about, inside, naming, show
from simqueue.settings import Settings, invalid, problems_of


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (Problem((), "too much"), "too much"),
        (Problem(("a", 0, "b"), "too much"), "a.0.b: too much"),
        (Problem(("a",), "too much", "5"), "a = 5: too much"),
        (Problem(("a",), "too much", ""), "a: too much"),
        (Problem(("a",), "too much", "5", "s.yaml:3"), "s.yaml:3: a = 5: too much"),
        (Problem((), "too much", place="--set a=5"), "--set a=5: too much"),
    ],
)
def test_a_problem_is_one_line(problem: Problem, line: str) -> None:
    """Place, path, value and text, as far as they are known."""
    assert str(problem) == line


def test_several_problems_are_a_line_each() -> None:
    """An error that collects problems prints one line per problem."""
    assert str(InputError.of([Problem((), "one"), Problem(("a",), "two")])) == "one\na: two"


def test_problems_travel_between_processes() -> None:
    """A worker process sends an error back with its problems."""
    for error in (InputError("too much", "a", value=5), FileError("no file"), InputError.of([Problem(("b",), "x")])):
        back = deepcopy(error)  # by the same protocol as pickling
        assert (type(back), back.problems, str(back)) == (type(error), error.problems, str(error))


def test_paths_are_extended_until_the_place_is_known() -> None:
    """A problem with a place keeps its path; a problem without a key gets its path from `about` only."""
    placed, open_, bare = Problem(("a",), "x", place="s.yaml:1"), Problem(("a",), "x"), Problem((), "x")
    with pytest.raises(InputError) as caught, inside("w", "name.with.dots"):
        raise InputError.of([placed, open_, bare])
    assert [one.path for one in caught.value.problems] == [("a",), ("w", "name.with.dots", "a"), ()]
    with pytest.raises(InputError) as caught, about("gpu"):
        raise InputError.of([placed, open_, bare])
    assert [one.path for one in caught.value.problems] == [("a",), ("a",), ("gpu",)]


def test_only_errors_about_a_whole_file_are_about_the_key_that_names_it() -> None:
    """A wrong row is reported with its file and line; a missing file is reported at the key that names it."""
    with pytest.raises(InputError, match=r"^trace\.path: no file$"), naming("trace", "path"):
        raise FileError("no file")
    with pytest.raises(InputError, match=r"^t\.csv:3: wrong$"), naming("trace", "path"):
        raise InputError("t.csv:3: wrong")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "null"), (True, "true"), (float("inf"), ".inf"), (float("nan"), ".nan"), ("a", "'a'"), ([1], None)],
)
def test_values_are_shown_as_yaml_writes_them(value: object, shown: str | None) -> None:
    """Scalars are shown as in a file; lists and mappings are not shown."""
    assert show(value) == shown


def test_a_validator_names_the_key() -> None:
    """A validator's error is a problem with the path and value that the validator gave."""

    class Pair(Settings):
        low: int
        high: int

        @model_validator(mode="after")
        def _ordered(self) -> Pair:
            if self.low > self.high:
                raise invalid(f"must be at most high = {self.high} {{sic}}", "low", value=self.low)
            return self

    with pytest.raises(ValidationError) as caught:
        Pair(low=2, high=1)
    assert problems_of(caught.value) == [Problem(("low",), "must be at most high = 1 {sic}", "2")]
