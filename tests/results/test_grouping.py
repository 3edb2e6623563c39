"""Warnings that several policies or replications have in common are one line."""

from __future__ import annotations

from simqueue.results.grouping import Warned, common_notes, grouped


def test_equal_warnings_name_all_their_policies() -> None:
    """One line for each text, in the order of the first, with the policies in their order."""
    found = [Warned("a", "careful", 0), Warned("a", "slow", 0), Warned("b", "careful", 0), Warned("c", "slow")]
    assert list(grouped(found, {"a": 1, "b": 1, "c": 1})) == ["a, b: careful", "a: slow", "c: slow"]


def test_replications_are_counted_unless_all_are_meant() -> None:
    """A warning of some replications says of how many; of all of them it names the policy alone."""
    found = [Warned("a", "careful", 0), Warned("a", "careful", 2), Warned("b", "careful", 1), Warned("b", "careful", 0)]
    assert list(grouped(found, {"a": 3, "b": 2})) == ["a (2 of 3 replications), b: careful"]


def test_texts_that_differ_in_numbers_are_one_line() -> None:
    """The numbers are those of the first run, and the line says so; numbers inside names are no numbers."""
    found = [
        Warned("a", "3 % of the steps are outside, with 1,200 to 31,060 tokens", 0),
        Warned("b", "12 % of the steps are outside, with 65 to 80 tokens", 0),
        Warned("a", "fitted on h100-80gb", 0),
        Warned("b", "fitted on h100-40gb", 0),
    ]
    assert list(grouped(found, {"a": 1, "b": 1})) == [
        "a, b: 3 % of the steps are outside, with 1,200 to 31,060 tokens (the numbers are those of a)",
        "a: fitted on h100-80gb",
        "b: fitted on h100-40gb",
    ]
    again = [Warned("a", "1 lost", 0), Warned("a", "2 lost", 1)]
    assert list(grouped(again, {"a": 2})) == ["a: 1 lost (the numbers are those of a, replication 0)"]


def test_numbers_of_a_whole_policy_are_never_left_out() -> None:
    """Overload and rejections of a policy are told with its own numbers."""
    found = [Warned("a", "offered load 1.2"), Warned("b", "offered load 5.6"), Warned("c", "offered load 1.2")]
    assert list(grouped(found, dict.fromkeys("abc", 1))) == ["a, c: offered load 1.2", "b: offered load 5.6"]


def test_many_policies_that_agree_are_not_listed() -> None:
    """A line about all of more than four policies does not list them; about some of them it does."""
    names = dict.fromkeys("abcdef", 2)
    assert list(grouped([Warned(name, "careful") for name in names], names)) == ["all 6 policies: careful"]
    some = [Warned(name, "careful") for name in "abcde"]
    assert list(grouped(some, names)) == ["a, b, c, d, e: careful"]
    single = [Warned(name, "careful", 1) for name in names]
    assert next(grouped(single, names)).startswith("a (1 of 2 replications), b (1 of 2")


def test_notes_of_replications_are_told_once() -> None:
    """Equal notes once; notes that differ in numbers as of their first replication; all notes of one replication."""
    notes = [["dropped 3 of 90 rows", "sorted"], ["dropped 5 of 90 rows", "sorted"], ["renamed 2 ids", "renamed 4 ids"]]
    assert common_notes(notes) == [
        "dropped 3 of 90 rows (the numbers are those of replication 0)",
        "sorted",
        "renamed 2 ids",
        "renamed 4 ids",
    ]
