"""Values from the command line, which override those of a file."""

from typing import Any

import pytest

from simqueue.errors import InputError
from simqueue.scenario.overrides import Override, apply, override_seed, parse_override


def _applied(data: dict[str, Any], *texts: str) -> dict[str, Any]:
    return apply(data, [parse_override(text) for text in texts])[0]


def test_value_is_yaml_and_path_is_dotted() -> None:
    """a.b=VALUE sets a YAML value and makes missing mappings; the first '=' ends the path."""
    assert _applied({"a": {"b": 1, "c": 2}}, "a.b=1e-3", "d.e={f: [1]}", "g=x=y") == {
        "a": {"b": 1e-3, "c": 2},
        "d": {"e": {"f": [1]}},
        "g": "x=y",
    }


def test_data_is_left_alone() -> None:
    """The data of the file are not changed."""
    data = {"a": {"b": 1}}
    _applied(data, "a.b=2")
    assert data == {"a": {"b": 1}}


def test_list_items_by_number() -> None:
    """A whole number is an index of a list, from 0, or a key of a mapping."""
    assert _applied({"a": [{"b": 1}, {"b": 2}], "m": {}}, "a.1.b=5", "m.7=x") == {
        "a": [{"b": 1}, {"b": 5}],
        "m": {"7": "x"},
    }


def test_later_flags_win() -> None:
    """The last of two flags for a value counts, and a whole mapping replaces what was set inside it."""
    data, flags = apply({}, [parse_override(t) for t in ("a.b=1", "a.b=2", "c.d=1", "c={e: 2}")])
    assert data == {"a": {"b": 2}, "c": {"e": 2}}
    assert flags == {("a", "b"): "--set a.b=2", ("c",): "--set c={e: 2}"}


def test_flag_beats_policies_of_their_own() -> None:
    """A flag for a scenario's key overrides the policy's own; a flag that names the policy overrides both."""
    data = {"gpu": "a", "policies": {"p": {"gpu": "b"}, "q": {}, "r": {"gpu": "c"}}}
    assert _applied(data, "policies.r.gpu=d", "gpu=e") == {
        "gpu": "e",
        "policies": {"p": {"gpu": "e"}, "q": {}, "r": {"gpu": "d"}},
    }


def test_only_keys_that_policies_share_reach_them() -> None:
    """Other top-level keys do not change policies."""
    assert _applied({"policies": {"p": {"name": 1}}}, "name=2") == {"name": 2, "policies": {"p": {"name": 1}}}


def test_a_star_stands_for_every_key() -> None:
    """It stands for each key and each item that is there; a flag that names one of them overrides it, in any order."""
    data = {"policies": {"a": {"n": 1}, "b": {}}, "m": [{"x": 1}, {"x": 2}]}
    assert _applied(data, "policies.b.n=5", "policies.*.n=3", "m.*.x=7", "policies.*.k.l=0") == {
        "policies": {"a": {"n": 3, "k": {"l": 0}}, "b": {"n": 5, "k": {"l": 0}}},
        "m": [{"x": 7}, {"x": 7}],
    }
    for text in ("none.*.x=1", "policies.a.n.*=1"):
        with pytest.raises(InputError, match=r"--set .* has no keys that '\*' could stand for"):
            _applied(data, text)


def test_seed_flag() -> None:
    """--seed N sets the key seed; errors name the flag."""
    assert apply({"seed": 1}, [override_seed(7)]) == ({"seed": 7}, {("seed",): "--seed 7"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seed", "write it as KEY=VALUE"),
        ("a..b=1", "a key is empty"),
        ("=1", "a key is empty"),
        ("a=[1", "not valid YAML"),
        ("list.2.b=1", "'list' has 2 items, counted from 0; there is no item 2"),
        ("list.x=1", "'list' is a list; its items are named by number"),
        ("list.0.x.y=1", "'list.0' is 5, which has no keys inside"),
        ("word.x=1", "'word' is 'text', which has no keys inside"),
    ],
)
def test_errors_name_the_flag(text: str, words: str) -> None:
    """A flag that cannot be applied is an error in one line that starts with the flag."""
    with pytest.raises(InputError) as caught:
        _applied({"list": [5, 6], "word": "text"}, text)
    assert str(caught.value).startswith(f"--set {text}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize("whole", [None, {}, 3, {"y": {"scheduler": "static"}}])
@pytest.mark.parametrize("group", ["policies", "workloads"])
def test_a_flag_inside_a_group_that_a_later_flag_replaces(group: str, whole: Any) -> None:
    """The later flag wins; whether its value is allowed is decided when the scenario is validated."""
    data = {group: {"a": {"scheduler": "chunked"}}}
    assert apply(data, [parse_override(f"{group}.x.scheduler=chunked"), Override((group,), whole, "")])[0] == {
        group: whole
    }


def test_a_step_time_in_a_list_of_policies() -> None:
    """Policies written as a list, which is reported later, do not break the flag."""
    assert _applied({"policies": [{}]}, "policies.0.step_time.mfu=0.5") == {"policies": [{"step_time": {"mfu": 0.5}}]}
