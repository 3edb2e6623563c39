"""`cache_aware`: its rules by version, one decision at a time, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simqueue.request import Request
from simqueue.routing import Ranking
from simqueue.routing.gateway import SglangRouter, VllmRouter
from simqueue.routing.gateway.cache_aware import CacheAware
from simqueue.routing.gateway.single import exceeds, ratio, single

from ..helpers.profiles import examples
from .replicas import Replica, made, replicas

SGLANG = ["0.1.9", "0.2.3", "0.2.4", "0.3.2"]
VLLM = ["0.1.12", "0.1.17"]
ALL = [("sglang-router", version) for version in SGLANG] + [("vllm-router", version) for version in VLLM]


class Asked:
    """A router with replicas, and requests that are held or not."""

    def __init__(self, product: str, version: str, n: int = 3, **keys: object) -> None:
        self.router = made(product, version=version, **keys)
        self.seen = replicas(n)
        self.sent = 0

    @property
    def policy(self) -> CacheAware:
        """The policy, for its tree."""
        assert isinstance(self.router, SglangRouter | VllmRouter)
        assert isinstance(self.router.policy, CacheAware)
        return self.router.policy

    def rank(self, *pieces: tuple[int, int, int], now_s: float = 0.0) -> Ranking:
        """Return what would be chosen for a prompt."""
        return self.router.rank(self.asked(pieces), self.seen, now_s)

    def send(self, *pieces: tuple[int, int, int], to: int | None = None, now_s: float = 0.0) -> int:
        """Dispatch a prompt to the first that can be chosen, or to the one given."""
        asked = self.asked(pieces)
        ranking = self.router.rank(asked, self.seen, now_s)
        number = next(iter(ranking.chances)) if to is None else to
        self.router.dispatched(asked, self.seen[number], now_s)
        self.sent += 1
        return number

    def asked(self, pieces: tuple[tuple[int, int, int], ...]) -> Request:
        """Return a request with this prompt."""
        tokens = sum(length for _, _, length in pieces)
        return Request(f"r{self.sent}", 0.0, max(1, tokens), 1, prompt=pieces)


@pytest.mark.parametrize(("product", "version"), ALL)
def test_a_share_above_the_threshold_is_a_hit(product: str, version: str) -> None:
    """Exactly the threshold is a miss: 5 of 10 tokens at 0.5, and 6 of 11 is a hit."""
    one = Asked(product, version, cache_threshold=0.5)
    one.send((1, 0, 20), to=1)
    assert one.rank((1, 0, 5), (2, 0, 5)).reason == "miss"
    assert one.rank((1, 0, 6), (2, 0, 5)) == one.rank((1, 0, 6), (3, 0, 5))
    assert one.rank((1, 0, 6), (2, 0, 5)).chances == {1: 1.0}


@pytest.mark.parametrize(("product", "version"), ALL)
def test_unknown_prompts_share_nothing(product: str, version: str) -> None:
    """A request without known tokens matches only itself, and not another one as long."""
    one = Asked(product, version)
    for name in ("a", "b"):
        asked = Request(name, 0.0, 50, 1)
        assert one.router.rank(asked, one.seen, 0.0).reason == "miss"
        one.router.dispatched(asked, one.seen[2], 0.0)
        assert one.router.rank(asked, one.seen, 0.0).chances == {2: 1.0}


@pytest.mark.parametrize(("product", "version"), ALL)
def test_both_limits_make_an_imbalance(product: str, version: str) -> None:
    """More than abs = 64 and more than rel = 1.5 times; the load of an unhealthy worker does not count."""
    one = Asked(product, version, n=4)
    one.send((1, 0, 20), to=0)
    hot = (1, 0, 20)
    for loads, reason in (
        ([64, 0, 0, 0], "hit"),
        ([65, 0, 0, 0], "imbalanced"),
        ([300, 200, 200, 200], "hit"),
        ([301, 200, 200, 200], "imbalanced"),
        ([9, 3, 3, 80], "hit"),
    ):
        for replica, load in zip(one.seen, loads, strict=True):
            replica.in_flight = load
        one.seen[3].healthy = loads[3] < 80
        ranking = one.rank(hot)
        assert ranking.reason == reason
        assert ranking.chances == {(0 if reason == "hit" else 1): 1.0}


@pytest.mark.parametrize(
    ("product", "version", "chances"),
    [
        ("sglang-router", "0.1.9", {0: 0.5, 2: 0.5}),
        ("sglang-router", "0.2.3", {0: 0.5, 2: 0.5}),
        ("sglang-router", "0.2.4", {1: 1.0}),
        ("sglang-router", "0.3.2", {1: 1.0}),
        ("vllm-router", "0.1.12", {1: 1.0}),
        ("vllm-router", "0.1.17", {1: 1.0}),
    ],
)
def test_a_miss_goes_by_characters_or_by_load(product: str, version: str, chances: dict[int, float]) -> None:
    """Up to 0.2.3 to the fewest characters, equal ones alike; later to the fewest requests in flight, the first."""
    one = Asked(product, version)
    one.send((1, 0, 20), to=1)
    one.seen[0].in_flight = 1
    assert one.rank((9, 0, 20)).chances == chances


@pytest.mark.parametrize(
    ("product", "version", "chances"),
    [
        ("sglang-router", "0.1.9", {0: 0.5, 2: 0.5}),
        ("sglang-router", "0.2.3", {0: 0.5, 2: 0.5}),
        ("sglang-router", "0.2.4", {0: 0.5, 2: 0.5}),
        ("sglang-router", "0.3.2", {2: 1.0}),
        ("vllm-router", "0.1.12", {2: 1.0}),
        ("vllm-router", "0.1.17", {0: 1.0}),
    ],
)
def test_a_hit_of_several_owners(product: str, version: str, chances: dict[int, float]) -> None:
    """Any owner, the one whose text made the node, or the least loaded one."""
    one = Asked(product, version)
    one.send((1, 0, 20), (3, 0, 5), to=2)
    one.send((1, 0, 20), (4, 0, 5), to=0)
    one.seen[2].in_flight = 1
    assert one.rank((1, 0, 20), (5, 0, 5)).chances == chances


@pytest.mark.parametrize(("product", "version"), ALL)
def test_an_imbalanced_request_is_inserted_except_in_0_1_9(product: str, version: str) -> None:
    """The text is then known for the worker, but not in the oldest version."""
    one = Asked(product, version)
    one.seen[0].in_flight = 100
    assert one.send((1, 0, 20)) == 1
    one.seen[0].in_flight = 0
    assert one.rank((1, 0, 20)).reason == ("miss" if version == "0.1.9" else "hit")


@pytest.mark.parametrize(("product", "version"), ALL[:-1])
def test_an_unhealthy_owner(product: str, version: str) -> None:
    """The first healthy worker gets the request, the text is not inserted, and the owner loses it."""
    one = Asked(product, version)
    one.send((1, 0, 20), to=1)
    one.seen[1].healthy = False
    one.seen[0].in_flight = 2
    assert one.rank((1, 0, 20)).chances == {0: 1.0}
    one.send((1, 0, 20))
    assert one.policy.tree.sizes.get(0, 0) == 0
    one.seen[1].healthy = True
    assert one.rank((1, 0, 20)).reason == "miss"
    assert one.policy.tree.sizes.get(1, 0) == 0


def test_an_unhealthy_owner_in_0_1_17() -> None:
    """The request is a miss: the least loaded worker gets it and the text; the owner keeps it."""
    one = Asked("vllm-router", "0.1.17")
    one.send((1, 0, 20), to=1)
    one.seen[1].healthy = False
    one.seen[0].in_flight = 2
    ranking = one.rank((1, 0, 20))
    assert (ranking.reason, ranking.chances) == ("miss", {2: 1.0})
    one.send((1, 0, 20))
    assert one.policy.tree.sizes == {1: 160, 2: 160}
    assert one.rank((1, 0, 20)).chances == {2: 1.0}
    one.seen[1].healthy = True
    assert one.rank((1, 0, 20)).chances == {1: 1.0}


@pytest.mark.parametrize(("product", "version"), ALL)
def test_a_worker_that_leaves_is_forgotten(product: str, version: str) -> None:
    """Its texts are misses, and its characters are gone."""
    one = Asked(product, version)
    one.send((1, 0, 20), to=1)
    one.router.left(one.seen.pop(1), 0.0)
    assert one.rank((1, 0, 20)).reason == "miss"
    assert 1 not in one.policy.tree.sizes


def test_without_tokens_every_request_is_a_miss() -> None:
    """vllm-router 0.1.17 asks workers for tokens; if none answers, the same prompt again is a miss."""
    one = Asked("vllm-router", "0.1.17", tokenized=False)
    one.send((1, 0, 20), to=1)
    assert one.rank((1, 0, 20)).reason == "miss"


@pytest.mark.parametrize(
    ("product", "version", "size"),
    [
        ("sglang-router", "0.3.2", 20 * 4),
        ("vllm-router", "0.1.12", 20 * 4),
        ("vllm-router", "0.1.17", 20 * 8),
    ],
)
def test_sizes_are_in_characters(product: str, version: str, size: int) -> None:
    """A token has chars_per_token characters, 4 by default, or 8 where texts are token numbers."""
    one = Asked(product, version)
    one.send((1, 0, 20), to=1)
    assert one.policy.tree.sizes == {1: size}


@pytest.mark.parametrize(("product", "interval_s"), [("sglang-router", 60), ("vllm-router", 120)])
def test_eviction_is_at_its_times(product: str, interval_s: int) -> None:
    """A text that is too long is known until the next multiple of the interval."""
    one = Asked(product, "0.3.2" if product == "sglang-router" else "0.1.17", max_tree_size=10)
    for begin in (0.0, 2.0):
        one.send((1, 0, 20), to=1, now_s=interval_s * begin)
        assert one.rank((1, 0, 20), now_s=interval_s * (begin + 1) - 0.1).reason == "hit"
        assert one.rank((1, 0, 20), now_s=interval_s * (begin + 1)).reason == "miss"


def test_no_eviction_without_an_interval() -> None:
    """With 0 s, nothing is ever evicted."""
    one = Asked("sglang-router", "0.3.2", max_tree_size=10, eviction_interval_secs=0)
    one.send((1, 0, 20), to=1)
    assert one.rank((1, 0, 20), now_s=1e9).reason == "hit"


@pytest.mark.parametrize(("version", "kept"), [("0.2.4", 1), ("0.3.2", 2)])
def test_a_look_up_is_a_use_up_to_0_2_4(version: str, kept: int) -> None:
    """Text 1 is older than text 2, but was looked up after it by a longer one, which missed and went elsewhere."""
    one = Asked("sglang-router", version, max_tree_size=100, eviction_interval_secs=10)
    one.send((1, 0, 20), to=0)
    one.send((2, 0, 20), to=0)
    one.send((1, 0, 20), (3, 0, 80), to=1)
    one.policy.evict()
    assert one.policy.tree.sizes[0] == 80
    assert one.policy.tree.find(((kept, 0, 4),)).matched == 4
    assert 0 in one.policy.tree.find(((kept, 0, 4),)).owners


def test_a_decision_of_another_is_inserted_too() -> None:
    """A worker that was chosen without a question, as when a request is sent again, has the text from then on."""
    one = Asked("sglang-router", "0.3.2")
    one.router.dispatched(one.asked(((1, 0, 20),)), one.seen[2], 0.0)
    assert one.rank((1, 0, 20)).chances == {2: 1.0}


def test_at_low_load_every_miss_goes_to_the_first() -> None:
    """Sixteen unrelated prompts, each finished before the next one, all go to one worker."""
    one = Asked("sglang-router", "0.3.2")
    assert [one.send((number, 0, 20)) for number in range(16)] == [0] * 16


def test_the_worker_that_got_a_copy_attracts_nothing() -> None:
    """Prompts of a hot prefix that went elsewhere when loads were imbalanced leave the prefix with its first worker."""
    one = Asked("sglang-router", "0.3.2", balance_abs_threshold=2)
    for number in range(12):
        one.seen[one.send((1, 0, 40), (10 + number, 0, 5))].in_flight += 1
    loads = [replica.in_flight for replica in one.seen]
    assert max(loads) - min(loads) <= 3
    for replica in one.seen:
        replica.in_flight = 0
    assert one.rank((1, 0, 40), (99, 0, 5)).chances == {0: 1.0}


@examples(150, 1000)
@given(high=st.integers(0, 2**26), low=st.integers(0, 2**26), relative=st.floats(0, 10), absolute=st.integers(0, 100))
def test_comparisons_are_in_32_bits(high: int, low: int, relative: float, absolute: int) -> None:
    """Shares and imbalances are those of numpy's 32-bit numbers."""
    assert single(relative) == float(np.float32(relative))
    assert ratio(low, high) == (float(np.float32(low) / np.float32(high)) if high else 0.0)
    wide = np.float32(high) > np.float32(low) * np.float32(relative)
    assert exceeds(high, low, absolute, relative) == (high - low > absolute and bool(wide))


def test_32_bits_decide_at_the_edge() -> None:
    """1.4 times 5 is above 7 in 64-bit numbers of the 32-bit factor, and equal to it in 32 bits: 7 is no imbalance."""
    edges = [
        (high, low, factor)
        for factor in (1.1, 1.2, 1.3, 1.4, 1.6, 1.7, 1.8, 1.9)
        for low in range(1, 60)
        for high in range(low, 2 * low + 1)
        if (high > low * factor) != bool(np.float32(high) > np.float32(low) * np.float32(factor))
    ]
    assert edges
    for high, low, factor in edges:
        assert exceeds(high, low, -1, factor) != (high > low * factor)


def test_replicas_that_were_never_seen_have_no_characters() -> None:
    """A worker that joins starts empty, so that the oldest rule prefers it."""
    one = Asked("sglang-router", "0.2.3", n=2)
    one.send((1, 0, 20), to=0)
    one.send((2, 0, 20), to=1)
    one.seen.append(Replica(2))
    one.router.joined(one.seen[2], 0.0)
    assert one.rank((9, 0, 20)).chances == {2: 1.0}


def test_an_owner_takes_the_place_of_a_creator_that_lost_the_text() -> None:
    """In 0.3.2 any owner is chosen then, and the one that was keeps it, also when the creator has the text again."""
    one = Asked("sglang-router", "0.3.2")
    for worker in (2, 0, 1):
        one.send((1, 0, 20), (10 + worker, 0, 5), to=worker)
    one.policy.tree.take(one.policy.tree.leaving(2, 0), 2)
    hot = ((1, 0, 20), (9, 0, 5))
    assert one.rank(*hot).chances == {0: 0.5, 1: 0.5}
    asked = one.asked(hot)
    one.router.rank(asked, one.seen, 0.0)
    one.router.dispatched(asked, one.seen[1], 0.0)
    one.send((1, 0, 20), (12, 0, 5), to=2)
    assert one.rank((1, 0, 20), (8, 0, 5)).chances == {1: 1.0}


@pytest.mark.parametrize("version", ["0.1.9", "0.2.3"])
def test_a_worker_that_lost_its_texts_gets_no_misses_until_a_text_is_inserted(version: str) -> None:
    """Back to health, it has no characters and still is not the one with the fewest; with a text it counts again."""
    one = Asked("sglang-router", version, n=2)
    one.send((1, 0, 20), to=1)
    one.seen[1].healthy = False
    one.send((1, 0, 20))
    one.seen[1].healthy = True
    one.send((2, 0, 30), to=0)
    assert one.rank((9, 0, 20)).chances == {0: 1.0}
    one.router.dispatched(one.asked(((3, 0, 1),)), one.seen[1], 0.0)
    assert one.rank((9, 0, 20)).chances == {1: 1.0}
