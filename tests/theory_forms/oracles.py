"""The closed forms of the catalogue, computed independently: with 60 and more digits, from exact inputs.

Each function takes the parameters of the formula of its name and returns what the formula should, as numbers with many
digits; `scale` is that of a value that may be close to 0.
"""
# ruff: noqa: D103 - each function is the formula of its name

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np

from tests.theory_forms.queue_lengths import drawn_queues

Values = dict[str, Any]
mp.mp.dps = 60


def _means(rate: Any, service: Any, wait: Any) -> Values:
    return {
        "utilisation": rate * service,
        "mean_wait_s": wait,
        "mean_sojourn_s": wait + service,
        "mean_waiting": rate * wait,
        "mean_in_system": rate * (wait + service),
    }


def mm1(arrival_rate: Any, service_rate: Any) -> Values:
    return _means(arrival_rate, 1 / service_rate, arrival_rate / (service_rate * (service_rate - arrival_rate)))


def mm1_sojourn_quantile(arrival_rate: Any, service_rate: Any, p: Any) -> Values:
    return {"value": -mp.log(1 - p) / (service_rate - arrival_rate)}


def mm1_wait_quantile(arrival_rate: Any, service_rate: Any, p: Any) -> Values:
    waits = arrival_rate / service_rate
    found = mp.log(waits / (1 - p)) / (service_rate - arrival_rate)
    return {"value": max(mp.mpf(0), found), "scale": 1 / (service_rate - arrival_rate)}


def mg1(arrival_rate: Any, mean_service_s: Any, second_moment_s2: Any) -> Values:
    wait = arrival_rate * second_moment_s2 / (2 * (1 - arrival_rate * mean_service_s))
    return _means(arrival_rate, mean_service_s, wait)


def mg1_wait_variance(arrival_rate: Any, mean_service_s: Any, second_moment_s2: Any, third_moment_s3: Any) -> Values:
    idle = 1 - arrival_rate * mean_service_s
    first = arrival_rate * second_moment_s2 / (2 * idle)
    return {"value": first**2 + arrival_rate * third_moment_s3 / (3 * idle)}


def md1(arrival_rate: Any, service_s: Any) -> Values:
    return mg1(arrival_rate, service_s, service_s**2)


def _erlangs_series(rate: Any, service: Any, t: Any) -> Any:
    """Return P(wait <= t) in M/D/1 by the alternating series, with digits enough for its largest term."""
    with mp.workdps(60 + int(3 * t / service)):
        terms = (
            mp.exp(rate * (t - k * service)) * (-rate * (t - k * service)) ** k / mp.factorial(k)
            for k in range(int(mp.floor(t / service)) + 1)
        )
        return +((1 - rate * service) * mp.fsum(terms))


@cache
def _tail(rate: Any, service: Any) -> tuple[Any, Any]:
    """Return θ and K of the M/D/1 wait in service times."""
    load = rate * service
    low, high = mp.mpf(1 - load), mp.mpf(1)
    while load * mp.expm1(high) < high:
        high *= 2
    for _ in range(150):
        middle = mp.sqrt(low * high) if low > 0 else high / 2
        low, high = (middle, high) if load * mp.expm1(middle) < middle else (low, middle)
    return low, (1 - load) / (load * mp.exp(low) - 1)


@cache
def _md1_wait_above(rate: Any, service: Any, t: Any) -> Any:
    if t / service <= 60:
        return 1 - _erlangs_series(rate, service, t)
    theta, factor = _tail(rate, service)
    return factor * mp.exp(-theta * t / service)


def md1_wait_cdf(arrival_rate: Any, service_s: Any, t_s: Any) -> Values:
    if t_s < 0 or mp.isinf(t_s):
        return {"value": mp.mpf(t_s >= 0)}
    return {"value": 1 - _md1_wait_above(arrival_rate, service_s, t_s)}


def md1_wait_quantile(arrival_rate: Any, service_s: Any, p: Any) -> Values:
    if p <= 1 - arrival_rate * service_s:
        return {"value": mp.mpf(0)}

    def above(t: Any) -> bool:
        return bool(_md1_wait_above(arrival_rate, service_s, t) > 1 - p)

    low, high = mp.mpf(0), 20 * service_s
    if above(high):  # beyond 20 service times the next term of the tail is below exp(-40)
        theta, factor = _tail(arrival_rate, service_s)
        return {"value": mp.log(factor / (1 - p)) / theta * service_s}
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return {"value": low, "scale": service_s}


def md1_decay(arrival_rate: Any, service_s: Any) -> Values:
    theta, factor = _tail(arrival_rate, service_s)
    return {"decay_per_s": theta / service_s, "factor": factor}


def md1_wait_tail_quantile(arrival_rate: Any, service_s: Any, p: Any) -> Values:
    theta, factor = _tail(arrival_rate, service_s)
    return {"value": mp.log(factor / (1 - p)) / theta * service_s}


def kingman_bound(arrival_rate: Any, mean_service_s: Any, gap_variance_s2: Any, service_variance_s2: Any) -> Values:
    idle = 1 - arrival_rate * mean_service_s
    return {"value": arrival_rate * (gap_variance_s2 + service_variance_s2) / (2 * idle)}


def kingman_approximation(arrival_rate: Any, mean_service_s: Any, gap_scv: Any, service_scv: Any) -> Values:
    load = arrival_rate * mean_service_s
    return {"value": load / (1 - load) * (gap_scv + service_scv) / 2 * mean_service_s}


def ps_mean_sojourn(arrival_rate: Any, mean_service_s: Any, service_s: Any) -> Values:
    return {"value": service_s / (1 - arrival_rate * mean_service_s)}


def erlang_b(servers: int, offered_load: Any) -> Values:
    # 1 / B = sum of c! / (c - k)! / a^k, whose terms are products.
    with np.errstate(all="ignore"):
        steps = np.log(np.arange(servers, 0, -1.0)) - float(mp.log(offered_load))
        logs = np.concatenate(([0.0], np.cumsum(steps)))
        top = logs.max()
        inverse = mp.exp(mp.mpf(top)) * mp.mpf(float(np.exp(logs - top).sum()))
    return {"value": 1 / inverse}


def erlang_c(servers: int, offered_load: Any) -> Values:
    blocked = erlang_b(servers, offered_load)["value"]
    return {"value": servers * blocked / (servers - offered_load * (1 - blocked))}


def mmc(servers: int, arrival_rate: Any, service_rate: Any) -> Values:
    waits = erlang_c(servers, arrival_rate / service_rate)["value"]
    wait = waits / (servers * service_rate - arrival_rate)
    return {
        "utilisation": arrival_rate / (servers * service_rate),
        "wait_probability": waits,
        "mean_wait_s": wait,
        "mean_sojourn_s": wait + 1 / service_rate,
        "mean_waiting": arrival_rate * wait,
    }


def mmc_wait_quantile(servers: int, arrival_rate: Any, service_rate: Any, p: Any) -> Values:
    waits = erlang_c(servers, arrival_rate / service_rate)["value"]
    mean = 1 / (servers * service_rate - arrival_rate)
    return {"value": max(mp.mpf(0), mp.log(waits / (1 - p)) * mean), "scale": mean}


def allen_cunneen_approximation(
    servers: int, arrival_rate: Any, mean_service_s: Any, gap_scv: Any, service_scv: Any
) -> Values:
    exact = mmc(servers, arrival_rate, 1 / mean_service_s)["mean_wait_s"]
    return {"value": exact * (gap_scv + service_scv) / 2}


def mm1k(arrival_rate: Any, service_rate: Any, room: int) -> Values:
    r = arrival_rate / service_rate
    if r == 1:
        loss, inside = mp.mpf(1) / (room + 1), mp.mpf(room) / 2
    else:
        loss = r**room * (1 - r) / (1 - r ** (room + 1))
        inside = r / (1 - r) - (room + 1) * r ** (room + 1) / (1 - r ** (room + 1))
    empty = (1 - r) / (1 - r ** (room + 1)) if r != 1 else loss
    through = service_rate * (1 - empty)
    return {
        "loss_probability": loss,
        "mean_in_system": inside,
        "mean_sojourn_s": inside / through,
        "throughput": through,
    }


@cache
def _gamma_idle(rate: Any, service: Any, shape: Any) -> Any:
    """Return 1 - σ by bisection of its logarithm."""

    def positive(idle: Any) -> bool:
        power = -service * idle / rate if mp.isinf(shape) else -shape * mp.log1p(service * idle / (shape * rate))
        return bool(mp.log1p(-idle) > power)

    low, high = mp.mpf("1e-90"), mp.mpf(1) - mp.mpf(10) ** (-mp.mp.dps + 2)
    if positive(high):
        return high
    for _ in range(150):
        middle = mp.sqrt(low * high)
        low, high = (middle, high) if positive(middle) else (low, middle)
    return low


def _gamma_busy(rate: Any, service: Any, shape: Any) -> Any:
    idle = _gamma_idle(rate, service, shape)
    if 1 - idle > mp.mpf("1e-20"):
        return 1 - idle
    # σ is tiny: one step of σ = A*(μ (1 - σ)) from 0 is right to σ itself.
    return mp.exp(-service / rate) if mp.isinf(shape) else (1 + service / (shape * rate)) ** -shape


def gamma_m1_root(arrival_rate: Any, service_rate: Any, burstiness: Any) -> Values:
    return {"value": _gamma_busy(arrival_rate, service_rate, burstiness)}


def gamma_m1_mean_wait(arrival_rate: Any, service_rate: Any, burstiness: Any) -> Values:
    idle = _gamma_idle(arrival_rate, service_rate, burstiness)
    return {"value": _gamma_busy(arrival_rate, service_rate, burstiness) / (service_rate * idle)}


def gamma_m1_mean_sojourn(arrival_rate: Any, service_rate: Any, burstiness: Any) -> Values:
    return {"value": 1 / (service_rate * _gamma_idle(arrival_rate, service_rate, burstiness))}


def gamma_m1_sojourn_quantile(arrival_rate: Any, service_rate: Any, burstiness: Any, p: Any) -> Values:
    return {"value": -mp.log(1 - p) / (service_rate * _gamma_idle(arrival_rate, service_rate, burstiness))}


@cache
def _bulk_y(rate: Any, service: Any, most: int) -> Any:
    """Return -log r by bisection of its logarithm."""

    def above(y: Any) -> bool:
        r = mp.exp(-y)
        return bool(r * -mp.expm1(-most * y) / -mp.expm1(-y) > rate / service)

    low, high = mp.mpf("1e-60"), mp.log1p(service / rate) + 1
    for _ in range(150):
        middle = mp.sqrt(low * high)
        low, high = (middle, high) if above(middle) else (low, middle)
    return low


def bulk_root(arrival_rate: Any, service_rate: Any, most: int) -> Values:
    return {"value": mp.exp(-_bulk_y(arrival_rate, service_rate, most))}


def dynamic_batching(arrival_rate: Any, service_rate: Any, most: int) -> Values:
    r = mp.exp(-_bulk_y(arrival_rate, service_rate, most))
    ratio = service_rate / arrival_rate
    p0 = 1 / (ratio + 1 / (1 - r))
    waiting = p0 * r / (1 - r) ** 2
    wait = waiting / arrival_rate
    return {
        "idle_probability": ratio * p0,
        "mean_waiting": waiting,
        "mean_wait_s": wait,
        "mean_sojourn_s": wait + 1 / service_rate,
    }


def fixed_batching(arrival_rate: Any, service_rate: Any, most: int) -> Values:
    r = mp.exp(-_bulk_y(arrival_rate, service_rate, most))
    sojourn = (mp.mpf(most - 1) / 2 + r / (1 - r)) / arrival_rate
    wait = sojourn - 1 / service_rate
    return {
        "idle_probability": 1 - arrival_rate / (most * service_rate),
        "mean_waiting": arrival_rate * wait,
        "mean_wait_s": wait,
        "mean_sojourn_s": sojourn,
    }


def slotted_continuous(arrival_rate: Any, slots: int, mean_output_tokens: Any, step_s: Any) -> Values:
    """M/D/1 for one slot and one token; Little's law for the batch otherwise."""
    load = arrival_rate * mean_output_tokens * step_s
    if slots == 1 and mean_output_tokens == 1:
        wait = load * step_s / (2 * (1 - load))
        return {"busy_share": load, "mean_wait_s": wait, "mean_sojourn_s": wait + step_s, "mean_batch": mp.mpf(1)}
    if slots == 1:
        return {"busy_share": load, "mean_batch": mp.mpf(1)}
    return {"busy_share x mean_batch": load}


def continuous_over_static(mean_output_tokens: Any, batch: int) -> Values:
    """Inclusion and exclusion over the members of the batch; for many, the integral to half a token."""
    goes_on = 1 - 1 / mean_output_tokens
    if batch <= 150:
        with mp.workdps(200):
            terms = ((-1) ** (j + 1) * mp.binomial(batch, j) / (1 - goes_on**j) for j in range(1, batch + 1))
            return {"value": mp.fsum(terms) / mean_output_tokens}
    rate = -mp.log(goes_on) if goes_on else mp.inf
    within = mp.mpf(10) ** 10 / 2  # the sum is within half a token of the integral and a half
    return {"value": (mp.harmonic(batch) / rate + 0.5) / mean_output_tokens, "scale": within / mean_output_tokens}


def shared_decoding(arrival_rate: Any, mean_output_tokens: Any, overhead_s: Any, per_decode_s: Any) -> Values:
    load = arrival_rate * mean_output_tokens * per_decode_s
    itl = (overhead_s + per_decode_s) / (1 - load)
    batch = arrival_rate * mean_output_tokens * itl
    first = 3 * itl / 2 - per_decode_s
    return {
        "load": load,
        "mean_batch": batch,
        "variance_batch": batch / (1 - load),
        "itl_s": itl,
        "ttft_s": first,
        "e2el_s": first + (mean_output_tokens - 1) * itl,
    }


def free_slots(arrival_rate: Any, mean_output_tokens: Any, step_s: Any) -> Values:
    return {
        "mean_batch": arrival_rate * mean_output_tokens * step_s,
        "ttft_s": 3 * step_s / 2,
        "e2el_s": step_s / 2 + mean_output_tokens * step_s,
    }


def _routed(load: Any, waits: Any, wait: Any, service: Any) -> Values:
    return {"utilisation": load, "wait_probability": waits, "mean_wait_s": wait, "mean_sojourn_s": wait + service}


def random_split(servers: int, arrival_rate: Any, mean_service_s: Any, second_moment_s2: Any) -> Values:
    one = mg1(arrival_rate / servers, mean_service_s, second_moment_s2)
    return _routed(one["utilisation"], one["utilisation"], one["mean_wait_s"], mean_service_s)


def round_robin(servers: int, arrival_rate: Any, service_rate: Any) -> Values:
    rate, shape = arrival_rate / servers, mp.mpf(servers)
    wait = gamma_m1_mean_wait(rate, service_rate, shape)["value"]
    return _routed(rate / service_rate, _gamma_busy(rate, service_rate, shape), wait, 1 / service_rate)


def separate_over_central_wait(servers: int, arrival_rate: Any, service_rate: Any) -> Values:
    alone = mm1(arrival_rate / servers, service_rate)["mean_wait_s"]
    return {"value": alone / mmc(servers, arrival_rate, service_rate)["mean_wait_s"]}


def supermarket_tail(choices: int, arrival_rate: Any, service_rate: Any, length: int) -> Values:
    few = min(length, 300 if choices > 1 else length)  # 2^300 powers of any load below 1 are 0
    power = length if choices == 1 else (mp.mpf(choices) ** few - 1) / (choices - 1)
    log_value = power * mp.log(arrival_rate / service_rate)
    return {"value": mp.exp(log_value) if log_value > -10000 else mp.mpf(0)}


def supermarket(choices: int, arrival_rate: Any, service_rate: Any) -> Values:
    load = arrival_rate / service_rate
    if choices == 1:
        return _routed(load, load, mm1(arrival_rate, service_rate)["mean_wait_s"], 1 / service_rate)
    tails = [supermarket_tail(choices, arrival_rate, service_rate, k)["value"] for k in range(2, 150)]
    return _routed(load, load**choices, mp.fsum(tails) / arrival_rate, 1 / service_rate)


def shortest_of_drawn_queues(servers: int, choices: int, arrival_rate: Any, service_rate: Any) -> Values:
    load, service = arrival_rate / (servers * service_rate), 1 / service_rate
    if choices == 1 or servers == 1:
        return _routed(load, load, load * service / (1 - load), service)
    if 1 - load < mp.mpf("1e-11"):  # in heavy traffic all queues are equal
        return {"utilisation": load, "mean_wait_s": service / (servers * (1 - load))}
    if load > 0.55 or servers > 4:
        return {"utilisation": load}
    waits, waiting = (0, 0) if load < 1e-6 else drawn_queues(servers, choices, float(load), 40 // servers + 8)
    wait = waiting * service / (load * servers) if waiting else 0
    return {**_routed(load, waits, wait, service), "scale": service}


def shortest_queue(servers: int, arrival_rate: Any, service_rate: Any) -> Values:
    return shortest_of_drawn_queues(servers, servers, arrival_rate, service_rate)


ORACLES: dict[str, Callable[..., Values]] = {
    name: value
    for name, value in list(globals().items())
    if getattr(value, "__module__", None) == __name__ and not name.startswith("_") and callable(value)
}
