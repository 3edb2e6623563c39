"""Traffic in proportion to weights."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..helpers.profiles import examples
from .replicas import Replica, fleets, made, replicas, request


def turns(seen: list[Replica], n: int) -> list[int]:
    """Return the first `n` choices in smooth turns."""
    router = made("weighted", smooth=True)
    found = []
    for _ in range(n):
        number = router.choose(request(), seen, 0.0).replica
        assert number is not None
        router.dispatched(request(), next(one for one in seen if one.number == number), 0.0)
        found.append(number)
    return found


@examples(40, 400)
@given(seen=fleets())
def test_chances_are_in_proportion_to_weights(seen: list[Replica]) -> None:
    """A chance is the weight over the weights of all healthy replicas."""
    weights = {one.number: Fraction(one.weight) for one in seen if one.healthy}
    expected = {number: float(weight / sum(weights.values())) for number, weight in weights.items()}
    assert made("weighted").rank(request(), seen, 0.0).chances == pytest.approx(expected)


def test_the_published_turns_of_nginx() -> None:
    """Weights 5, 1, 1 give a a b a c a a (nginx, change of May 2012 that brought smooth weights), again and again."""
    assert "".join("abc"[i] for i in turns(replicas(3, weight=[5.0, 1.0, 1.0]), 14)) == 2 * "aabacaa"


@examples(40, 400)
@given(weights=st.lists(st.integers(1, 9), min_size=1, max_size=6), tenths=st.booleans())
def test_a_cycle_of_turns_has_the_weights(weights: list[int], tenths: bool) -> None:
    """In every cycle each replica has as many turns as its weight, also if the weights are tenths; cycles are alike."""
    seen = replicas(len(weights), weight=[w / 10 if tenths else float(w) for w in weights])
    found = turns(seen, 2 * sum(weights))
    assert Counter(found[: sum(weights)]) == Counter(dict(enumerate(weights)))
    assert found[: sum(weights)] == found[sum(weights) :]


def test_a_replica_that_is_down_has_no_turn() -> None:
    """The others share the turns by weight, and it goes on where it was when it is back."""
    seen = replicas(3, weight=[2.0, 1.0, 1.0], healthy=[True, False, True])
    assert Counter(turns(seen, 9)) == {0: 6, 2: 3}


def test_a_replica_that_has_left_begins_again() -> None:
    """Turns after a replica has left and come back are those of new replicas, as far as it is concerned."""
    router, seen = made("weighted", smooth=True), replicas(2, weight=[3.0, 1.0])
    router.choose(request(), seen, 0.0)
    router.dispatched(request(), seen[0], 0.0)
    assert router.rank(request(), seen, 0.0).scores == {"gained": {0: 2, 1: 2}}
    router.left(seen[0], 0.0)
    assert router.rank(request(), seen, 0.0).scores == {"gained": {0: 3, 1: 2}}


def test_turns_count_once_for_each_question() -> None:
    """A second dispatch without a question of its own changes nothing."""
    router, seen = made("weighted", smooth=True), replicas(2)
    router.choose(request(), seen, 0.0)
    router.dispatched(request(), seen[0], 0.0)
    before = router.rank(request(), seen, 0.0)
    router.dispatched(request(), seen[1], 0.0)
    router.dispatched(request(), seen[1], 0.0)
    assert router.rank(request(), seen, 0.0).scores["gained"][0] == before.scores["gained"][0] + 1
