"""Routing over servers with a queue each: at random, in turn, the shortest of a few, the shortest of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from simqueue.errors import InputError
from simqueue.theory import choices
from simqueue.theory.choices import shortest_of_drawn_queues, shortest_queue
from simqueue.theory.many_servers import mmc
from simqueue.theory.renewal import gamma_m1_mean_wait
from simqueue.theory.routing import (
    random_split,
    round_robin,
    separate_over_central_wait,
    supermarket,
    supermarket_tail,
)
from simqueue.theory.single_server import md1, mm1

from .queue_lengths import drawn_queues


def test_the_limit_is_where_its_differential_equations_end() -> None:
    """From empty servers, the shares with at least k customers grow until they and their mean are those of theory."""
    rate, d = 0.8, 2

    def flow(_: float, s: Any) -> Any:
        below, above = np.append(1.0, s[:-1]), np.append(s[1:], 0.0)
        return rate * (below**d - s**d) - (s - above)

    s = solve_ivp(flow, (0, 150), np.zeros(12), method="LSODA", rtol=1e-10, atol=1e-13).y[:, -1]
    assert s == pytest.approx([supermarket_tail(d, rate, 1, k) for k in range(1, 13)], abs=1e-7)
    assert supermarket(d, rate, 1).mean_sojourn_s == pytest.approx(s.sum() / rate, rel=1e-6)


def test_the_tails_of_the_limit_balance_what_comes_and_goes() -> None:
    """The share with k customers grows as often as it falls: λ (s[k-1]^d - s[k]^d) = s[k] - s[k+1]."""
    for d in (1, 2, 5):
        s = [1.0, *(supermarket_tail(d, 0.9, 1, k) for k in range(1, 9))]
        for k in range(1, 8):
            assert 0.9 * (s[k - 1] ** d - s[k] ** d) == pytest.approx(s[k] - s[k + 1], abs=1e-12)


@pytest.mark.parametrize(
    ("servers", "drawn", "load", "most"), [(2, 2, 0.9, 150), (3, 2, 0.7, 40), (3, 3, 0.8, 40), (4, 2, 0.5, 20)]
)
def test_the_chain_is_that_of_all_queue_lengths(servers: int, drawn: int, load: float, most: int) -> None:
    """Both means are those of a chain that knows only the rules, within what that one leaves out and its own error."""
    waits, waiting = drawn_queues(servers, drawn, load, most)
    found = shortest_of_drawn_queues(servers, drawn, 3 * servers * load, 3)
    assert found.wait_probability == pytest.approx(waits, rel=1e-6)
    assert found.mean_wait_s == pytest.approx(waiting / (3 * servers * load), rel=1e-6)
    assert found.mean_sojourn_s == pytest.approx(found.mean_wait_s + 1 / 3)


@pytest.mark.parametrize(("servers", "drawn", "load"), [(3, 2, 0.9), (4, 4, 0.9), (4, 2, 0.6)])
def test_the_error_that_is_told_is_about_the_true_one(
    servers: int, drawn: int, load: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a third of the states, the wait differs from the right one by no more than the error that is told."""
    right = shortest_of_drawn_queues(servers, drawn, servers * load, 1)
    monkeypatch.setattr(choices, "_MOST_STATES", 50)
    rough = shortest_of_drawn_queues(servers, drawn, servers * load, 1)
    error = abs(rough.mean_wait_s - right.mean_wait_s) / right.mean_wait_s
    assert right.relative_error < error / 10
    assert rough.relative_error / 10 < error < 1.5 * rough.relative_error


@pytest.mark.parametrize("load", [0.5, 0.75, 0.9])
@pytest.mark.parametrize("servers", [3, 4])
def test_the_order_of_routers(servers: int, load: float) -> None:
    """One queue for all waits least, then the shortest queue, the shorter of two, in turn, and at random."""
    rate = servers * load
    waits = [
        mmc(servers, rate, 1).mean_wait_s,
        shortest_queue(servers, rate, 1).mean_wait_s,
        shortest_of_drawn_queues(servers, 2, rate, 1).mean_wait_s,
        round_robin(servers, rate, 1).mean_wait_s,
        random_split(servers, rate, 1, 2).mean_wait_s,
    ]
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(load / (1 - load))
    assert waits[-1] / waits[0] == pytest.approx(separate_over_central_wait(servers, rate, 1))


def test_two_choices_of_more_and_more_servers_come_close_to_the_limit() -> None:
    """The difference to the limit falls at least in proportion to the number of servers."""
    limit = supermarket(2, 0.3, 1).mean_wait_s
    apart = [shortest_of_drawn_queues(c, 2, 0.3 * c, 1).mean_wait_s - limit for c in (2, 4, 8)]
    assert apart[0] / 2 > apart[1] > 2 * apart[2] > 0


def test_turns_of_two_servers_are_a_cubic_equation() -> None:
    """With two servers σ is the root of σ (2 λ' + μ (1 - σ))² = (2 λ')² in (0, 1), λ' the rate of one server."""
    rate, service = 1.4, 1.0
    turn = np.poly1d([-service, rate + service])  # 2 λ' is the rate of both
    roots = (np.poly1d([1, 0]) * turn * turn - rate**2).roots
    (sigma,) = [root.real for root in roots if abs(root.imag) < 1e-12 and 0 < root.real < 1 - 1e-9]
    found = round_robin(2, rate, service)
    assert found.wait_probability == pytest.approx(sigma)
    assert found.mean_wait_s == pytest.approx(sigma / (service * (1 - sigma)))


def test_turns_of_one_and_of_very_many_servers() -> None:
    """One server is M/M/1, and for very many the gaps are nearly constant: D/M/1."""
    assert round_robin(1, 0.8, 1).mean_wait_s == pytest.approx(mm1(0.8, 1).mean_wait_s)
    constant_gaps = gamma_m1_mean_wait(0.8, 1, float("inf"))
    assert round_robin(10**6, 0.8e6, 1).mean_wait_s == pytest.approx(constant_gaps, rel=1e-5)


def test_a_random_split_of_equal_services_is_many_md1() -> None:
    """The wait is that of M/D/1 with a share of the arrivals."""
    assert random_split(5, 4, 1, 1).mean_wait_s == pytest.approx(md1(0.8, 1).mean_wait_s)


def test_what_one_queue_for_two_servers_saves() -> None:
    """At 1.5 erlangs 4.5 of 7 customers wait at two servers with one queue, so that it divides waits by 7/3."""
    assert separate_over_central_wait(2, 1.5, 1) == pytest.approx(7 / 3)


def test_a_chain_that_is_too_large_is_refused() -> None:
    """What cannot be solved in about a second says which parameters must be smaller."""
    for servers, drawn in ((6, 2), (100, 100), (1_000_000, 2)):
        with pytest.raises(InputError, match=f"servers = {servers:,} with choices = {drawn:,}: must be fewer"):
            shortest_of_drawn_queues(servers, drawn, 0.97 * servers, 1)
    with pytest.raises(InputError, match="choices = 3: must be at most 2"):
        shortest_of_drawn_queues(2, 3, 1, 1)
