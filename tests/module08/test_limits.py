"""What `simulate` refuses, and a budget smaller than the seats."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from simqueue.errors import InputError
from simqueue.module08 import Req, simulate


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"arrival": -1.0}, "arrival = -1.0: must be a finite number of ms, at least 0"),
        ({"arrival": math.nan}, "arrival = nan: must be a finite number"),
        ({"arrival": math.inf}, "arrival = inf: must be a finite number"),
        ({"prompt_len": 0}, "prompt_len = 0: must be a whole number of at least 1"),
        ({"out_len": -3}, "out_len = -3: must be a whole number of at least 1"),
        ({"out_len": 2.5}, "out_len = 2.5: must be a whole number"),
    ],
)
def test_impossible_requests_are_refused(change: dict[str, Any], said: str) -> None:
    """An impossible request is one line that says which one, which value and what is allowed."""
    requests = [Req(0, 0.0, 10, 2), Req(**({"rid": 7, "arrival": 0.0, "prompt_len": 10, "out_len": 2} | change))]
    with pytest.raises(InputError) as caught:
        simulate("continuous", requests)
    assert str(caught.value).startswith(f"requests[1] (rid 7): {said}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["max_num_seqs", "max_num_batched_tokens", "chunk"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_impossible_settings_are_refused(key: str, value: Any) -> None:
    """Seats, budget and chunk are whole numbers of at least 1, whatever the policy."""
    for policy in ("static", "continuous", "chunked"):
        with pytest.raises(InputError, match=rf"^{key} = {value}: must be a whole number of at least 1$"):
            simulate(policy, [Req(0, 0.0, 10, 2)], **{key: value})


def _by_the_rules(
    policy: str, requests: list[Req], seats: int, budget: int, chunk: int
) -> dict[int, tuple[float, float]]:
    """Return first token and end of each request by the module's rules, written down a second time, in ms."""
    now, todo = 0.0, sorted(requests, key=lambda req: req.arrival)
    queue, running, prefilling, left_ms = list[Req](), list[Req](), list[Req](), dict[int, tuple[float, float]]()
    made: dict[int, int] = {}
    read: dict[int, int] = {}
    first: dict[int, float] = {}
    while len(left_ms) < len(requests):
        if not (queue or running or prefilling):
            now = max(now, todo[0].arrival)
        while todo and todo[0].arrival <= now:
            queue.append(todo.pop(0))
        rest, tokens, decoding, ready = budget - len(running), 0, list(running), list[Req]()
        if policy == "continuous":
            while queue and len(running) + len(ready) < seats and queue[0].prompt_len <= rest:
                rest -= queue[0].prompt_len
                ready.append(queue.pop(0))
            if not running and not ready:
                ready.append(queue.pop(0))
            tokens = sum(req.prompt_len for req in ready)
        else:
            while rest > 0 and queue and len(running) + len(prefilling) < seats:
                prefilling.append(queue.pop(0))
            for req in prefilling:
                piece = min(chunk, req.prompt_len - read.get(req.rid, 0), max(rest, 0))
                read[req.rid] = read.get(req.rid, 0) + piece
                rest, tokens = rest - piece, tokens + piece
            ready = [req for req in prefilling if read[req.rid] == req.prompt_len]
            prefilling = [req for req in prefilling if req not in ready]
        now += 0.2 + 0.02 * tokens + (0.4 + 0.03 * len(decoding) if decoding else 0.0)
        for req in (*decoding, *ready):
            made[req.rid] = made.get(req.rid, 0) + 1
            first.setdefault(req.rid, now)
        running += ready
        for req in [req for req in running if made[req.rid] == req.out_len]:
            running.remove(req)
            left_ms[req.rid] = (first[req.rid], now)
    return left_ms


@pytest.mark.parametrize("policy", ["continuous", "chunked"])
def test_a_budget_below_the_seats_follows_the_modules_rules(policy: Any) -> None:
    """Also where the budget of a step is smaller than the number of seats every time is that of the module's rules."""
    for seed in range(60):
        luck = random.Random(seed)
        requests = [Req(i, luck.uniform(0, 30), luck.randint(1, 40), luck.randint(1, 12)) for i in range(15)]
        budget = luck.randint(1, 10)
        seats, chunk = budget + luck.randint(1, 10), luck.randint(1, 10)
        expected = _by_the_rules(policy, requests, seats, budget, chunk)
        played, _ = simulate(policy, requests, max_num_seqs=seats, max_num_batched_tokens=budget, chunk=chunk)
        for req in played:
            assert (req.first_tok, req.finish) == pytest.approx(expected[req.rid], rel=1e-9), (seed, req.rid)
