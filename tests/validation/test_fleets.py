"""Fleets whose replicas serve one request after another, against the theory of routing.

Each runs with eight fixed seeds; the mean of the seeds lies within four standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

import simqueue as sq
from simqueue.statistics.intervals import mean_interval
from simqueue.theory.choices import shortest_of_drawn_queues, shortest_queue
from simqueue.theory.many_servers import mmc
from simqueue.theory.routing import random_split, round_robin
from studies.fleet.exact import SERVICE_S, Size, mean_waits, played

SERVERS, LOAD = 3, 0.7
SIZE = Size(requests=300, replications=8)
OFFERED = SERVERS * LOAD
THEORY: Mapping[str, float] = {
    "random": random_split(SERVERS, OFFERED, 1, 2).mean_wait_s,
    "round_robin": round_robin(SERVERS, OFFERED, 1).mean_wait_s,
    "power_of_two": shortest_of_drawn_queues(SERVERS, 2, OFFERED, 1).mean_wait_s,
    "join_shortest_queue": shortest_queue(SERVERS, OFFERED, 1).mean_wait_s,
    "central_queue": mmc(SERVERS, OFFERED, 1).mean_wait_s,
}
"""Router -> mean wait in services."""


def fleets(routers: Mapping[str, Any], servers: int = SERVERS, **more: Any) -> dict[str, dict[str, Any]]:
    """Return a fleet for each router, by its name."""
    return {name: {"replicas": servers, "router": router, **more} for name, router in routers.items()}


def test_waits_of_exponential_services() -> None:
    """At random, in turn, the shorter of two, the shortest, one queue: each mean wait is that of its theory."""
    waits = mean_waits(played(fleets({name: name for name in THEORY}), LOAD, SIZE))
    away = {name: (waits[name].value - wait) / (waits[name].error or 0) for name, wait in THEORY.items()}
    assert away == {name: pytest.approx(0, abs=4) for name in THEORY}


def test_waits_of_constant_services() -> None:
    """A random split of equal services is M/D/1 at each replica."""
    (found,) = mean_waits(played(fleets({"random": "random"}), LOAD, SIZE, "constant")).values()
    assert (found.value - random_split(SERVERS, OFFERED, 1, 1).mean_wait_s) / (found.error or 0) == pytest.approx(
        0, abs=4
    )


def test_the_order_of_routers() -> None:
    """On the same traffic, waits rise from the shortest queue over the shorter of two and turns to a random split."""
    order = ["join_shortest_queue", "power_of_two", "round_robin", "random"]
    waits = mean_waits(played(fleets({name: name for name in order}, 6), 0.9, Size(400, 2)))
    assert sorted(order, key=lambda name: waits[name].value) == order


@pytest.mark.parametrize("front_end", [{}, {"front_end": {"request_ms": 10}}])
def test_a_central_queue_counts_the_requests_on_their_way(front_end: dict[str, Any]) -> None:
    """Requests of 50 ms, 10 ms on their way: each seat takes one every 60 ms, and the others wait at the router."""
    result = sq.run(
        {
            "step_time": {"kind": "constant", "seconds": 0.05},
            "workload": {
                "arrivals": {"process": "all_at_once"},
                "prompt_tokens": {"distribution": "constant", "value": 10},
                "output_tokens": {"distribution": "constant", "value": 1},
                "num_requests": 9,
            },
            "kv_cache": {"layout": "paged", "block_size": 16, "blocks": 100},
            "policies": {
                "p": {
                    "scheduler": "continuous",
                    "max_num_seqs": 1,
                    "fleet": {
                        "replicas": 3,
                        "router": "central_queue",
                        **({} if front_end else {"router_time": {"latency_ms": 10}}),
                    },
                    **front_end,
                }
            },
        }
    )
    starts = sorted(result.requests["first_scheduled_s"])
    assert starts == pytest.approx([0.01] * 3 + [0.07] * 3 + [0.13] * 3)


def herded(seed: int, servers: int, load: float, age: float, requests: int) -> float:
    """Return the mean wait where each request joins a queue that was the shortest at the last look, by Lindley."""
    random = Random(seed)
    ends: list[list[float]] = [[0.0] for _ in range(servers)]
    now = look = 0.0
    ties, waits = [0], []
    for _ in range(requests):
        now += random.expovariate(servers * load)
        if now >= look:
            look = now - now % age
            lengths = [sum(end > look for end in queue) for queue in ends]
            ties = [i for i, length in enumerate(lengths) if length == min(lengths)]
            ends = [[end for end in queue if end > look] or queue[-1:] for queue in ends]
            look += age
        queue = ends[random.choice(ties)]
        start = max(now, queue[-1])
        waits.append(start - now)
        queue.append(start + random.expovariate(1))
    return sum(waits[requests // 5 :]) / len(waits[requests // 5 :])


def test_old_signals_herd() -> None:
    """Waits are those of a calculation of their own: better than random with young signals, worse with old ones."""
    ages = (0.5, 6.0)
    made = {
        f"age-{age:g}".replace(".", "-"): {
            "replicas": 4,
            "router": "join_shortest_queue",
            "signals": {"every_s": age * SERVICE_S},
        }
        for age in ages
    }
    at_random = random_split(4, 4 * LOAD, 1, 2).mean_wait_s
    found = list(mean_waits(played(made, LOAD, Size(500, 5))).values())
    for age, one in zip(ages, found, strict=True):
        expected = mean_interval([herded(seed, 4, LOAD, age, 10_000) for seed in range(8)])
        error = math.hypot(one.error or 0, expected.error or 0)
        assert (one.value - expected.value) / error == pytest.approx(0, abs=4)
    assert found[0].value < at_random / 2
    assert found[1].value > at_random


@pytest.mark.parametrize(
    "router", ["session_affinity", "prefix_affinity", {"kind": "prefix_affinity", "index": "tree", "threshold": 0.4}]
)
def test_conversations_find_their_whole_past_where_they_stay(router: Any) -> None:
    """Five turns of 400 new tokens and 20 answered: each finds the whole blocks of the turns before it."""
    result = sq.run(
        {
            "step_time": {"kind": "linear", "overhead_s": 0.01, "per_decode_s": 1e-4, "per_prefill_token_s": 5e-5},
            "kv_cache": {"layout": "paged", "block_size": 16, "blocks": 10_000, "prefix_caching": True},
            "workload": {
                "sessions": {
                    "arrivals": {"process": "poisson", "rate_rps": 3},
                    "num_sessions": 60,
                    "turns": {"distribution": "constant", "value": 5},
                    "think_s": {"distribution": "constant", "value_s": 1.5},
                },
                "prompt_tokens": {"distribution": "constant", "value": 400},
                "output_tokens": {"distribution": "constant", "value": 20},
            },
            "policies": {"p": {"scheduler": "continuous", "fleet": {"replicas": 4, "router": router}}},
        }
    )
    prompts = [420 * turn + 400 for turn in range(5)]
    found = [(420 * turn - 1) // 16 * 16 for turn in range(1, 5)]  # the last token of an answer is not computed
    assert result.summary_rows[0]["prefix_hit_rate"] == pytest.approx(sum(found) / sum(prompts))
    assert result.requests["replica"].nunique() == 4
