"""`cache_aware` of every version against the same rules over plain lists of strings, for any course of events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.request import Request
from simqueue.routing.gateway import SglangRouter, VllmRouter
from simqueue.routing.gateway.cache_aware import CacheAware
from simqueue.routing.texts import scaled

from ..helpers.profiles import examples
from .replicas import Replica, made, replicas
from .text_lists import Lists, plain

VERSIONS = [("sglang-router", version) for version in ("0.1.9", "0.2.3", "0.2.4", "0.3.2")]
VERSIONS += [("vllm-router", version) for version in ("0.1.12", "0.1.17")]
OLD, OLDER = ("0.1.9", "0.2.3", "0.2.4"), ("0.1.9", "0.2.3")


class PlainRules:
    """The rules, one after the other."""

    def __init__(self, version: str, threshold: float, absolute: int) -> None:
        self.version, self.threshold, self.absolute = version, np.float32(threshold), absolute
        self.texts = Lists()
        self.lost: set[int] = set()

    def meant(self, text: str, seen: list[Replica]) -> tuple[str, list[int]]:
        """Return the reason and the workers that the rule names, healthy or not."""
        able = [one for one in seen if one.healthy]
        loads = [one.in_flight for one in able]
        least = [min(able, key=lambda one: one.in_flight).number]
        if max(loads) - min(loads) > self.absolute and max(loads) > 1.5 * min(loads):
            return "imbalanced", least
        matched, node = self.texts.find(text)
        if node is not None and np.float32(matched) / np.float32(len(text)) > self.threshold:
            owners = self.owners(node, able)
            if owners:
                return "hit", owners
        if self.version in OLDER:
            sizes = {one.number: self.texts.size(one.number) for one in seen if one.number not in self.lost}
            return "miss", [number for number, size in sizes.items() if size == min(sizes.values())]
        return "miss", least

    def owners(self, node: dict[str, Any], able: list[Replica]) -> list[int]:
        """Return the owners of a node that can be meant."""
        if self.version in OLD:
            return list(node["uses"])
        if self.version == "0.1.17":
            having = [one for one in able if one.number in node["uses"]]
            return [min(having, key=lambda one: one.in_flight).number] if having else []
        return [node["creator"]] if node["creator"] in node["uses"] else list(node["uses"])

    def dispatched(self, text: str, number: int, reason: str, meant: list[int], seen: list[Replica]) -> None:
        """Change the state."""
        _, node = self.texts.find(text)
        if self.version in OLD and reason != "imbalanced" and node is not None:
            self.texts.touch(text, number if number in node["uses"] else next(iter(node["uses"])))
        if number not in meant:
            down = [one for one in meant if not any(well.number == one and well.healthy for well in seen)]
            if down:
                self.texts.remove(down[0])
                self.lost.add(down[0])
            return
        if reason == "imbalanced" and self.version == "0.1.9":
            return
        if reason == "hit" and node is not None and node["creator"] not in node["uses"]:
            node["creator"] = number
        self.texts.insert(text, number)
        self.lost.discard(number)


PIECE = st.tuples(st.integers(1, 2), st.sampled_from([0, 0, 0, 3]), st.integers(1, 6))
EVENT = st.one_of(
    st.tuples(st.just("send"), st.lists(PIECE, min_size=1, max_size=2), st.integers(0, 9)),
    st.tuples(st.just("send"), st.lists(PIECE, min_size=1, max_size=2), st.integers(0, 9)),
    st.tuples(st.just("health"), st.integers(0, 2), st.booleans()),
    st.tuples(st.just("load"), st.integers(0, 2), st.integers(0, 4)),
    st.tuples(st.just("evict"), st.just(0), st.just(0)),
)


@pytest.mark.parametrize(("product", "version"), VERSIONS)
@examples(40, 600)
@given(
    events=st.lists(EVENT, max_size=30),
    threshold=st.sampled_from([0.0, 0.3, 0.5, 0.7]),
    absolute=st.integers(0, 3),
    most=st.integers(3, 12),
)
def test_decisions_are_those_of_lists(
    product: str, version: str, events: list[Any], threshold: float, absolute: int, most: int
) -> None:
    """Chances, reasons and sizes agree after any sends, failures, loads and evictions."""
    characters = 8 if version == "0.1.17" else 1
    keys: dict[str, Any] = {"cache_threshold": threshold, "balance_abs_threshold": absolute}
    keys |= {"max_tree_size": most * characters} | ({} if characters == 8 else {"chars_per_token": 1})
    router = made(product, version=version, **keys)
    assert isinstance(router, SglangRouter | VllmRouter)
    policy = router.policy
    assert isinstance(policy, CacheAware)
    rules, seen = PlainRules(version, threshold, absolute), replicas(3)
    for number, (name, what, how) in enumerate(events):
        if name == "health":
            seen[what].healthy = how or not any(one.healthy for one in seen if one.number != what)
        elif name == "load":
            seen[what].in_flight = how
        elif name == "evict":
            policy.evict()
            rules.texts.evict(most)
        else:
            text = plain(scaled(what, 1))
            asked = Request(f"r{number}", 0.0, len(text), 1, prompt=tuple(what))
            reason, meant = rules.meant(text, seen)
            first = next(one.number for one in seen if one.healthy)
            ranking = router.rank(asked, seen, 0.0)
            chances: dict[int, float] = {}
            for one in meant or [first]:
                target = one if seen[one].healthy else first
                chances[target] = chances.get(target, 0) + 1 / len(meant or [first])
            assert (ranking.reason, ranking.chances) == (reason, pytest.approx(chances))
            chosen = sorted(chances)[how % len(chances)]
            router.dispatched(asked, seen[chosen], 0.0)
            rules.dispatched(text, chosen, reason, meant, seen)
        policy.tree.check_integrity()
        for one in seen:
            assert policy.tree.sizes.get(one.number, 0) == characters * rules.texts.size(one.number)
