"""Slot filling in torch: waves padded to their longest answer, compared with slots that are refilled at once.

Both policies run the same requests through the same network. One model call is one prefill of the prompts that enter
together, or one decode of all rows of the batch. In a wave the rows of finished requests are still computed; their
tokens do not count.
"""

from __future__ import annotations

import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from simqueue.errors import InputError
from simqueue.module08.tinylm import TinyLM, load_torch
from simqueue.names import unknown

BenchPolicy = Literal["pad_to_max", "continuous"]
BENCH_POLICIES: tuple[BenchPolicy, ...] = get_args(BenchPolicy)
PROMPT_TOKENS: Final = 64
REQUESTS: Final = 64


@dataclass(frozen=True, slots=True)
class Call:
    """One model call.

    Attributes
    ----------
    prefill_tokens : int
        Prompt tokens computed; 0 in a decode call.
    rows : int
        Requests in the call, including finished requests of a wave.
    useful : int
        Requests that are not finished and get a token; 0 in a prefill call.
    seconds : float
        Duration; 0 if the network was not run.
    """

    prefill_tokens: int
    rows: int
    useful: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SlotUse:
    """One request in one slot. Times are numbers of calls.

    Attributes
    ----------
    slot, request : int
    start : int
        First call with the request.
    done : int
        First call after its last token.
    end : int
        First call without the request in the slot.
    """

    slot: int
    request: int
    start: int
    done: int
    end: int


@dataclass(slots=True)
class BenchRun:
    """One run of the bench: its calls, the use of its slots, and its wall time in `seconds`."""

    policy: BenchPolicy
    batch_size: int
    calls: list[Call] = field(default_factory=list)
    slots: list[SlotUse] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def generated(self) -> int:
        """Tokens generated for requests that were not finished."""
        return sum(call.useful for call in self.calls)

    @property
    def utilisation(self) -> float:
        """Useful rows divided by all slots of all decode calls."""
        decodes = sum(1 for call in self.calls if not call.prefill_tokens)
        return self.generated / (decodes * self.batch_size) if decodes else math.nan


def bench(policy: BenchPolicy, out_lens: Sequence[int], batch_size: int) -> tuple[int, float, int]:
    """Generate answers of the given lengths with `TinyLM`; run on a CUDA device if there is one.

    Parameters
    ----------
    policy : {"pad_to_max", "continuous"}
        Waves of `batch_size` requests that run until the longest answer is complete, or slots that are refilled
        before each decode call.
    out_lens : sequence of int
        Tokens to generate for each request, each at least 1.
    batch_size : int
        Slots.

    Returns
    -------
    generated : int
        Generated tokens that count: the sum of `out_lens`.
    seconds : float
        Wall time.
    calls : int
        Model calls, prefills included.

    Raises
    ------
    InputError
        If torch is not installed, the policy is unknown, or a number is out of range.
    """
    run = run_bench(policy, out_lens, batch_size)
    return run.generated, run.seconds, len(run.calls)


def module_lengths(seed: int = 7, n: int = REQUESTS) -> list[int]:
    """Return the module's answer lengths: lognormal with median 180 and sigma 0.5, within 64 and 512, whole tokens."""
    rng = random.Random(seed)  # the module's generator: the same bits
    return [int(min(max(rng.lognormvariate(math.log(180), 0.5), 64), 512)) for _ in range(n)]


def run_bench(policy: BenchPolicy, out_lens: Sequence[int], batch_size: int) -> BenchRun:
    """Run `bench` and return all calls and slots."""
    _check(policy, out_lens, batch_size)
    with _one_thread(load_torch()) as torch:
        device = "cuda" if torch.cuda.is_available() else "cpu"
        step = _timed_step(torch, TinyLM(torch, device), device)
        step(batch_size, PROMPT_TOKENS)  # the first calls load kernels
        step(batch_size, 1)
        start_s = time.perf_counter()
        run = _played(policy, out_lens, batch_size, step)
        run.seconds = time.perf_counter() - start_s
    return run


def planned(policy: BenchPolicy, out_lens: Sequence[int], batch_size: int) -> BenchRun:
    """Return the calls and slots of a run without running the network; this needs no torch."""
    _check(policy, out_lens, batch_size)
    return _played(policy, out_lens, batch_size, lambda *_: 0.0)


@dataclass(slots=True)
class _Held:
    """A request in a slot: its number, the tokens that are left to generate, and its first call."""

    request: int
    left: int
    start: int


Step = Callable[[int, int], float]
"""Runs the network on (rows, tokens per row) and returns the seconds it took."""


def _played(policy: BenchPolicy, out_lens: Sequence[int], batch_size: int, step: Step) -> BenchRun:
    run = BenchRun(policy, batch_size)
    (_pad_to_max if policy == "pad_to_max" else _continuous)(run, out_lens, step)
    return run


def _pad_to_max(run: BenchRun, out_lens: Sequence[int], step: Step) -> None:
    for first, wave in _waves(out_lens, run.batch_size):
        start = len(run.calls)
        run.calls.append(_prefill(len(wave), step))
        for made in range(max(wave)):
            run.calls.append(_decode(len(wave), sum(made < length for length in wave), step))
        end = len(run.calls)
        run.slots += [SlotUse(i, first + i, start, start + 1 + length, end) for i, length in enumerate(wave)]


def _continuous(run: BenchRun, out_lens: Sequence[int], step: Step) -> None:
    waiting = deque(enumerate(out_lens))
    held: dict[int, _Held] = {}
    while waiting or held:
        entering = [slot for slot in range(run.batch_size) if slot not in held][: len(waiting)]
        for slot in entering:
            held[slot] = _Held(*waiting.popleft(), len(run.calls))
        if entering:
            run.calls.append(_prefill(len(entering), step))
        run.calls.append(_decode(len(held), len(held), step))
        for slot, one in sorted(held.items()):
            one.left -= 1
            if one.left == 0:
                run.slots.append(SlotUse(slot, one.request, one.start, len(run.calls), len(run.calls)))
                del held[slot]


def _waves(out_lens: Sequence[int], size: int) -> Iterator[tuple[int, Sequence[int]]]:
    for first in range(0, len(out_lens), size):
        yield first, out_lens[first : first + size]


def _prefill(rows: int, step: Step) -> Call:
    return Call(rows * PROMPT_TOKENS, rows, 0, step(rows, PROMPT_TOKENS))


def _decode(rows: int, useful: int, step: Step) -> Call:
    return Call(0, rows, useful, step(rows, 1))


@contextmanager
def _one_thread(torch: Any) -> Iterator[Any]:
    """Limit torch to one thread: more would not speed up so small a network, and would slow it on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield torch
    finally:
        torch.set_num_threads(before)


def _timed_step(torch: Any, model: TinyLM, device: str) -> Step:
    def step(rows: int, length: int) -> float:
        start_s = time.perf_counter()
        with torch.inference_mode():
            model(torch.zeros((rows, length), dtype=torch.long, device=device))
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start_s

    return step


def _check(policy: str, out_lens: Sequence[int], batch_size: int) -> None:
    if policy not in BENCH_POLICIES:
        raise InputError(unknown("policy", policy, BENCH_POLICIES))
    if batch_size < 1:
        raise InputError(f"batch_size = {batch_size}: must be at least 1")
    short = next((length for length in out_lens if length < 1), None)
    if short is not None:
        raise InputError(f"out_lens: {short} must be at least 1")
