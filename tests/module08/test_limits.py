"""Arguments that `simulate` does not accept, and a token budget below the number of seats."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
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
def test_impossible_requests_are_errors(change: dict[str, Any], said: str) -> None:
    """The error is one line with the request, the value and what is allowed."""
    requests = [Req(0, 0.0, 10, 2), Req(**({"rid": 7, "arrival": 0.0, "prompt_len": 10, "out_len": 2} | change))]
    with pytest.raises(InputError) as caught:
        simulate("continuous", requests)
    assert str(caught.value).startswith(f"requests[1] (rid 7): {said}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["max_num_seqs", "max_num_batched_tokens", "chunk"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_impossible_settings_are_errors(key: str, value: Any) -> None:
    """Seats, budget and chunk must be integers of at least 1, for each policy."""
    for policy in ("static", "continuous", "chunked"):
        with pytest.raises(InputError, match=rf"^{key} = {value}: must be a whole number of at least 1$"):
            simulate(policy, [Req(0, 0.0, 10, 2)], **{key: value})


@dataclass
class ByTheRules:
    """The module's rules for continuous and chunked, written a second time; times in ms."""

    seats: int
    budget: int
    chunk: int
    queue: list[Req] = field(default_factory=list)
    running: list[Req] = field(default_factory=list)
    prefilling: list[Req] = field(default_factory=list)

    def continuous_step(self) -> tuple[int, list[Req]]:
        """Admit whole prompts; return their tokens, and the requests with a finished prompt."""
        rest, ready = self.budget - len(self.running), list[Req]()
        while self.queue and len(self.running) + len(ready) < self.seats and self.queue[0].prompt_len <= rest:
            rest -= self.queue[0].prompt_len
            ready.append(self.queue.pop(0))
        if not self.running and not ready:
            ready.append(self.queue.pop(0))
        return sum(req.prompt_len for req in ready), ready

    def chunked_step(self) -> tuple[int, list[Req]]:
        """Take chunks of prompts; return their tokens, and the requests with a finished prompt."""
        rest, tokens = self.budget - len(self.running), 0
        while rest > 0 and self.queue and len(self.running) + len(self.prefilling) < self.seats:
            self.prefilling.append(self.queue.pop(0))
        for req in self.prefilling:
            piece = min(self.chunk, req.prompt_len - req.prefill_done, max(rest, 0))
            req.prefill_done += piece
            rest, tokens = rest - piece, tokens + piece
        ready = [req for req in self.prefilling if req.prefill_done == req.prompt_len]
        self.prefilling = [req for req in self.prefilling if req not in ready]
        return tokens, ready

    def run(self, policy: str, requests: list[Req]) -> None:
        """Set the first token and the end of each request."""
        now, todo = 0.0, sorted(requests, key=lambda req: req.arrival)
        step = self.continuous_step if policy == "continuous" else self.chunked_step
        while todo or self.queue or self.running or self.prefilling:
            if not (self.queue or self.running or self.prefilling):
                now = max(now, todo[0].arrival)
            while todo and todo[0].arrival <= now:
                self.queue.append(todo.pop(0))
            decoding = list(self.running)
            tokens, ready = step()
            now += 0.2 + 0.02 * tokens + (0.4 + 0.03 * len(decoding) if decoding else 0.0)
            self.running += ready
            self.token_for(self.running, now)

    def token_for(self, running: list[Req], now: float) -> None:
        """Give each running request a token; finished requests leave."""
        for req in running:
            req.generated += 1
            req.first_tok = now if req.first_tok is None else req.first_tok
            req.finish = now if req.generated == req.out_len else None
        self.running = [req for req in running if req.finish is None]


@pytest.mark.parametrize("policy", ["continuous", "chunked"])
def test_a_budget_below_the_seats_follows_the_modules_rules(policy: Any) -> None:
    """With a token budget below the number of seats all times are still those of the module's rules."""
    for seed in range(60):
        rng = random.Random(seed)
        requests = [Req(i, rng.uniform(0, 30), rng.randint(1, 40), rng.randint(1, 12)) for i in range(15)]
        budget = rng.randint(1, 10)
        seats, chunk = budget + rng.randint(1, 10), rng.randint(1, 10)
        expected = [replace(req) for req in requests]
        ByTheRules(seats, budget, chunk).run(policy, expected)
        simulated, _ = simulate(policy, requests, max_num_seqs=seats, max_num_batched_tokens=budget, chunk=chunk)
        for req, right in zip(simulated, expected, strict=True):
            assert (req.first_tok, req.finish) == pytest.approx((right.first_tok, right.finish), rel=1e-9), (seed, req)
