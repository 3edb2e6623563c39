"""What is refused at arrival, and what the reason says."""

from __future__ import annotations

import pytest

from simqueue.errors import InputError
from simqueue.kvcache import ContiguousKVCache, PagedKVCache
from simqueue.request import Request
from simqueue.schedulers import SCHEDULERS, Static, scheduler
from simqueue.schedulers.limits import RequestLimits

from ..helpers.playing import play, seen


def test_reason_names_what_is_needed_and_what_is_there() -> None:
    """A request larger than the pool is refused with its lengths, its blocks and the pool's blocks."""
    big = Request("big", 0.0, 1002, 50)  # at most 1051 tokens in the cache: 65.7 blocks of 16
    reason = RequestLimits().rejection(big, PagedKVCache(49, 16))
    assert reason == "prompt 1002 + output 50 needs 66 blocks, the pool has 49"
    assert RequestLimits().rejection(big, PagedKVCache(66, 16)) is None


def test_last_output_token_needs_no_block() -> None:
    """A request of P and O tokens fits a pool of P + O - 1, and not one of P + O - 2."""
    request = Request("r", 0.0, 10, 5)
    assert RequestLimits().rejection(request, PagedKVCache(14, 1)) is None
    assert (
        RequestLimits().rejection(request, PagedKVCache(13, 1))
        == "prompt 10 + output 5 needs 14 blocks, the pool has 13"
    )


def test_reservation_counts_in_full() -> None:
    """With model_max reservation it is the reservation that must fit, however short the request."""
    kv = ContiguousKVCache(7, 16, reserve_tokens=128)
    assert (
        RequestLimits().rejection(Request("r", 0.0, 1, 1), kv) == "prompt 1 + output 1 needs 8 blocks, the pool has 7"
    )


def test_longer_than_the_model_is_refused() -> None:
    """prompt + output may reach max_model_len and not exceed it, even where oversized requests may wait."""
    kv = PagedKVCache(1000, 16)
    limits = RequestLimits(max_model_len=64, reject_oversized=False)
    assert limits.rejection(Request("r", 0.0, 60, 4), kv) is None
    assert limits.rejection(Request("r", 0.0, 60, 5), kv) == "prompt 60 + output 5 is longer than max_model_len 64"


def test_oversized_waits_where_nobody_refuses() -> None:
    """With ``unservable: wait`` the limits lets it in, and the run ends with it unfinished and named."""
    recording = play("chunked", {}, [(0.0, 9, 1), (0.0, 1, 1)], blocks=8, block_size=1, reject=False)
    assert seen(recording, "status") == {"a": "unfinished", "b": "unfinished"}  # b stands behind it
    assert recording.warnings == ("2 requests can never be completed and are unfinished: a, b",)


@pytest.mark.parametrize("name", ["static", "chunked", "continuous"])
def test_refused_request_does_not_hold_up_the_others(name: str) -> None:
    """Every policy turns an oversized request away at its arrival and serves the rest as if it had not come."""
    recording = play(name, {}, [(0.0, 9, 1), (0.0, 1, 1)], blocks=8, block_size=1)
    assert seen(recording, "status", "finish_s") == {"a": ("rejected", 0.0), "b": ("finished", 1.0)}


def test_a_name_belongs_to_one_scheduler() -> None:
    """Registering another class under a taken name is an error; the same class again is none."""
    with pytest.raises(
        InputError, match=r"scheduler 'static' is already registered by simqueue\.schedulers\.static\.Static"
    ):
        scheduler("static")(type("Other", (Static,), {}))
    assert scheduler("static")(Static) is Static
    assert set(SCHEDULERS) >= {"static", "continuous", "chunked"}


@pytest.mark.parametrize("module", ["mine", "__main__"])
def test_a_class_of_the_same_name_does_not_replace_a_scheduler(module: str) -> None:
    """A class called Static in a module of one's own is another class."""
    with pytest.raises(InputError, match="scheduler 'static' is already registered by simqueue"):
        scheduler("static")(type("Static", (Static,), {"__module__": module}))
    assert SCHEDULERS["static"] is Static


@pytest.mark.parametrize(
    ("first", "again", "accepted"),
    [
        ("mine", "mine", True),
        ("__main__", "__main__", True),
        ("__main__", "mine", True),
        ("mine", "__mp_main__", True),
        ("mine", "other", False),
    ],
)
def test_a_module_can_be_loaded_again(first: str, again: str, accepted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class registers again if its module is reloaded, or is the main program, here or in a worker process."""
    monkeypatch.setitem(SCHEDULERS, "own", type("Own", (Static,), {"__module__": first}))
    second = type("Own", (Static,), {"__module__": again})
    if accepted:
        assert scheduler("own")(second) is second
    else:
        with pytest.raises(InputError, match=f"already registered by {first}.Own"):
            scheduler("own")(second)
