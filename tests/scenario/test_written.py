"""Where the keys of groups are looked up: in the group, in its policy, for all policies."""

from __future__ import annotations

from typing import Any

import pytest

from simqueue.errors import InputError
from simqueue.scenario import from_mapping

from .fleets import KEYS


@pytest.mark.parametrize(
    ("own", "key", "place"),
    [
        ({"a": {"kv_cache": {"blocks": 9}}}, ("kv_cache", "blocks"), "policies.p.fleet.groups.a.kv_cache.blocks"),
        ({"a": {"kv_cache": {"blocks": 9}}}, ("kv_cache", "watermark"), "policies.p.fleet.groups.a.kv_cache.watermark"),
        ({"a": {}}, ("max_num_seqs",), "policies.p.max_num_seqs"),
        ({"a": {}}, ("gpu",), "gpu"),
        (None, ("order",), "fleet.groups.a.order"),
    ],
)
def test_errors_about_a_group_are_located_where_the_key_was_written(own: Any, key: tuple[str, ...], place: str) -> None:
    """An error that is found when a group is built names the place that gave the value."""
    policy = {**KEYS["policies"]["p"], **({} if own is None else {"fleet": {"groups": own}})}
    of_all = {"groups": {"a": {"order": "fcfs"}}}
    found = from_mapping({**KEYS, "policies": {"p": policy}, "fleet": of_all}).resolve()
    with pytest.raises(InputError) as caught, found.written.of_group("p", "a").locating("p"):
        raise InputError("does not do", *key)
    assert str(caught.value).partition(" = ")[0].partition(": ")[0] == place
