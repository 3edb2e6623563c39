"""Disciplines, many servers, losses, renewal arrivals, bulk service, sharing and tails against reference values."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from simqueue.errors import InputError
from simqueue.theory import bulk, disciplines, many_servers, renewal, sharing, tails
from simqueue.theory.catalog import FORMULAS, description, evaluate


@pytest.mark.parametrize(
    ("load", "fcfs", "shortest_first", "srpt"),
    [(0.5, 2, 1.712686, 1.425373), (0.8, 5, 2.882219, 2.352773), (0.9, 10, 4.196913, 3.552125)],
)
def test_orders_of_service_in_mm1(load: float, fcfs: float, shortest_first: float, srpt: float) -> None:
    """Shortest first and SRPT beat FCFS by the known amounts; sharing and feedback equal it for exponentials."""
    service = stats.expon()
    assert disciplines.sjf_mean_sojourn(load, service) == pytest.approx(shortest_first, abs=5e-7)
    assert disciplines.srpt_mean_sojourn(load, service) == pytest.approx(srpt, abs=5e-7)
    assert disciplines.fb_mean_sojourn(load, service) == pytest.approx(fcfs)
    assert disciplines.ps_mean_sojourn(load, 1) == pytest.approx(fcfs)


def test_processor_sharing_is_proportional() -> None:
    """At a load of 0.8 a job of half a second stays 2.5 s, one of five seconds 25 s."""
    assert [disciplines.ps_mean_sojourn(0.8, 1, s) for s in (0.5, 5)] == pytest.approx([2.5, 25])


def test_priorities_conserve_work() -> None:
    """Short prompts first: the classes' waits are Cobham's, and load times wait adds up as under FCFS."""
    rates, services = (18.0, 2.0), (0.02, 0.21)
    waits = disciplines.priority_waits(rates, services, [s * s for s in services])
    assert waits == pytest.approx((0.0745313, 0.3387784), abs=6e-8)
    loads = [rate * s for rate, s in zip(rates, services, strict=True)]
    assert sum(x * w for x, w in zip(loads, waits, strict=True)) == pytest.approx(0.1691182, abs=5e-8)


@pytest.mark.parametrize(
    ("servers", "offered", "waits", "wait", "waiting", "p99"),
    [
        (2, 1.6, 0.7111111, 1.7777778, 2.8444444, 10.660609),
        (4, 3.2, 0.5964325, 0.7455406, 2.3857299, 5.110476),
        (8, 6.4, 0.4576449, 0.2860281, 1.8305797, 2.389693),
        (8, 7.2, 0.7015330, 0.8769162, 6.3137969, 5.313354),
        (32, 28.8, 0.4581966, 0.1431864, 4.1237696, 1.195223),
        (256, 243.2, 0.3129256, 0.0244473, 5.9455855, 0.269014),
    ],
)
def test_erlang_c(servers: int, offered: float, waits: float, wait: float, waiting: float, p99: float) -> None:
    """M/M/c has Erlang's probability of waiting and the waits that follow from it."""
    found = many_servers.mmc(servers, offered, 1)
    assert found.wait_probability == pytest.approx(waits, abs=5e-8)
    assert found.mean_wait_s == pytest.approx(wait, abs=6e-8)
    assert found.mean_waiting == pytest.approx(waiting, abs=6e-8)
    assert many_servers.mmc_wait_quantile(servers, offered, 1, 0.99) == pytest.approx(p99, abs=5e-7)


def test_allen_cunneen_is_exact_for_exponentials_and_halves_for_constants() -> None:
    """With both SCVs 1 it is M/M/c; with constant service half of that."""
    exact = many_servers.mmc(4, 3.2, 1).mean_wait_s
    assert many_servers.allen_cunneen_approximation(4, 3.2, 1, 1, 1) == pytest.approx(exact)
    assert many_servers.allen_cunneen_approximation(4, 3.2, 1, 1, 0) == pytest.approx(exact / 2)


@pytest.mark.parametrize(
    ("rate", "room", "loss", "inside", "sojourn", "throughput"),
    [
        (0.8, 5, 0.08881950, 1.8683320, 2.5630652, 0.7289444),
        (0.9, 10, 0.05081373, 3.9694406, 4.6466007, 0.8542676),
        (1, 10, 1 / 11, 5, 5.5, 0.9090909),
        (1.5, 10, 0.33723208, 8.1286586, 8.1764757, 0.9941519),
    ],
)
def test_mm1k(rate: float, room: int, loss: float, inside: float, sojourn: float, throughput: float) -> None:
    """A finite room loses the known share, below, at and above a load of 1."""
    found = many_servers.mm1k(rate, 1, room)
    assert found.loss_probability == pytest.approx(loss, abs=5e-9)
    assert found.mean_in_system == pytest.approx(inside, abs=6e-8)
    assert found.mean_sojourn_s == pytest.approx(sojourn, abs=1.1e-7)
    assert found.throughput == pytest.approx(throughput, abs=6e-8)


@pytest.mark.parametrize(
    ("servers", "offered", "loss"),
    [
        (1, 1, 0.5),
        (5, 3, 0.11005435),
        (10, 8, 0.12166106),
        (10, 10, 0.21458234),
        (64, 60, 0.06036274),
        (256, 250, 0.03501966),
    ],
)
def test_erlang_b(servers: int, offered: float, loss: float) -> None:
    """Erlang's loss formula, from one server to 256."""
    assert many_servers.erlang_b(servers, offered) == pytest.approx(loss, abs=5e-9)


SHAPES = (0.25, 0.5, 1, 2, 4, math.inf)


@pytest.mark.parametrize(
    ("load", "waits"),
    [
        (0.5, [3.361051, 1.780776, 1, 0.618034, 0.432523, 0.255001]),
        (0.8, [10.955228, 6.316625, 4, 2.843980, 2.267384, 1.692731]),
        (0.9, [23.478889, 13.825486, 9, 6.588284, 5.383050, 4.178659]),
    ],
)
def test_gamma_arrivals(load: float, waits: list[float]) -> None:
    """Mean waits for burstiness 1/4 to 4 and for constant gaps."""
    assert [renewal.gamma_m1_mean_wait(load, 1, k) for k in SHAPES] == pytest.approx(waits, abs=5.1e-7)


def test_sojourns_of_gamma_arrivals_are_exponential() -> None:
    """Their 99th percentiles at a load of 0.8."""
    expected = [55.055858, 33.694302, 23.025851, 17.702181, 15.046858, 12.400484]
    found = [renewal.gamma_m1_sojourn_quantile(0.8, 1, k, 0.99) for k in SHAPES]
    assert found == pytest.approx(expected, abs=5.1e-7)


@pytest.mark.parametrize(
    ("most", "rate", "root", "idle", "waiting", "wait", "sojourn"),
    [
        (4, 2, 0.7412709, 0.1145463, 2.5368661, 1.2684331, 2.2684331),
        (4, 3.2, 0.9127067, 0.0265548, 10.1779807, 3.1806190, 4.1806190),
        (8, 6.4, 0.9501750, 0.0077250, 18.9229469, 2.9567105, 3.9567105),
        (32, 25.6, 0.9860664, 0.0005440, 70.7302693, 2.7629011, 3.7629011),
    ],
)
def test_dynamic_batching(
    most: int, rate: float, root: float, idle: float, waiting: float, wait: float, sojourn: float
) -> None:
    """M/M^[1,b]/1 takes what is there."""
    found = bulk.dynamic_batching(rate, 1, most)
    assert bulk.bulk_root(rate, 1, most) == pytest.approx(root, abs=6e-8)
    values = (found.idle_probability, found.mean_waiting, found.mean_wait_s, found.mean_sojourn_s)
    assert values == pytest.approx((idle, waiting, wait, sojourn), abs=6e-8)


@pytest.mark.parametrize(
    ("most", "rate", "inside", "sojourn"),
    [(4, 2, 4.3650466, 2.1825233), (4, 3.2, 11.9556275, 3.7361336), (8, 6.4, 22.5702649, 3.5266039)],
)
def test_fixed_batching(most: int, rate: float, inside: float, sojourn: float) -> None:
    """M/M^[b,b]/1 waits for a full batch."""
    found = bulk.fixed_batching(rate, 1, most)
    assert rate * found.mean_sojourn_s == pytest.approx(inside, abs=6e-8)
    assert found.mean_sojourn_s == pytest.approx(sojourn, abs=6e-8)


@pytest.mark.parametrize(
    ("rate", "busy", "wait", "sojourn"),
    [(4, 0.9955473, 0.5070532, 1.5070532), (6.4, 0.9998224, 0.6518380, 1.6518380)],
)
def test_batches_of_constant_duration(rate: float, busy: float, wait: float, sojourn: float) -> None:
    """M/D^[1,8]/1 by its embedded chain."""
    found = bulk.timed_batching(rate, [1.0] * 8)
    assert (found.busy_share, found.mean_wait_s, found.mean_sojourn_s) == pytest.approx((busy, wait, sojourn), abs=6e-8)


def test_batches_whose_duration_grows() -> None:
    """Static batching of equal requests: 500 prompt and 100 output tokens, up to 16 at a time, 5 a second."""
    found = bulk.timed_batching(5, [(0.02 + 0.01 * k) + 99 * (0.02 + 0.0005 * k) for k in range(1, 17)])
    assert found.mean_wait_s == pytest.approx(2.1272652, abs=6e-8)
    assert found.mean_sojourn_s == pytest.approx(5.0011419, abs=6e-8)


@pytest.mark.parametrize(
    ("rate", "slots", "wait", "ttft", "e2el", "busy", "batch"),
    [
        (6, 8, 0.21957869, 0.31957869, 1.21957869, 0.99833403, 6.0100125),
        (4, 8, 0.06325878, 0.16325878, 1.06325878, 0.98444309, 4.0632110),
        (1.6, 2, 1.7245216, 1.8245216, 2.7245216, 0.89305526, 1.7916025),
        (0.7, 1, 2.2166667, 2.3166667, 3.2166667, 0.7, 1),
    ],
)
def test_slots_in_steps(
    rate: float, slots: int, wait: float, ttft: float, e2el: float, busy: float, batch: float
) -> None:
    """Continuous batching with steps of 0.1 s and geometric outputs of mean 10, as an exact chain."""
    found = bulk.slotted_continuous(rate, slots, 10, 0.1)
    assert found.mean_wait_s == pytest.approx(wait, abs=5.1e-8)
    assert found.mean_wait_s + 0.1 == pytest.approx(ttft, abs=5.1e-8)
    assert found.mean_sojourn_s == pytest.approx(e2el, abs=5.1e-8)
    assert found.busy_share == pytest.approx(busy, abs=5.1e-9)
    assert found.mean_batch == pytest.approx(batch, abs=5.1e-8)


@pytest.mark.parametrize(
    ("mean", "gains"),
    [
        (10, [1, 1.473684, 2.027338, 2.629578, 3.258725, 3.902008, 4.552532]),
        (100, [1, 1.497487, 2.077899, 2.709245, 3.368797, 4.043169, 4.725132]),
    ],
)
def test_what_static_batching_loses(mean: float, gains: list[float]) -> None:
    """The longest of 1, 2, 4 ... 64 geometric outputs over the mean output."""
    found = [bulk.continuous_over_static(mean, 2**i) for i in range(7)]
    assert found == pytest.approx(gains, abs=5.1e-7)


@pytest.mark.parametrize(
    ("rate", "output", "a", "b", "load", "batch", "itl", "ttft", "e2el"),
    [
        (2, 200, 0.02, 0.001, 0.4, 14, 0.035, 0.0515, 7.0165),
        (1, 200, 0.02, 0.001, 0.2, 5.25, 0.02625, 0.038375, 5.262125),
        (4, 100, 0.015, 0.0005, 0.2, 7.75, 0.019375, 0.0285625, 1.9466875),
    ],
)
def test_shared_decoding(
    rate: float, output: float, a: float, b: float, load: float, batch: float, itl: float, ttft: float, e2el: float
) -> None:
    """Continuous batching without limits as generalised processor sharing."""
    found = sharing.shared_decoding(rate, output, a, b)
    values = (found.load, found.mean_batch, found.itl_s, found.ttft_s, found.e2el_s)
    assert values == pytest.approx((load, batch, itl, ttft, e2el))
    assert found.variance_batch == pytest.approx(batch / (1 - load))


def test_free_slots() -> None:
    """Twenty requests a second of 50 tokens, steps of 20 ms: a batch of 20, TTFT of one and a half steps."""
    found = sharing.free_slots(20, 50, 0.02)
    assert (found.mean_batch, found.ttft_s, found.e2el_s) == pytest.approx((20, 0.03, 1.01))


@pytest.mark.parametrize(
    ("load", "theta", "factor", "p99"),
    [
        (0.5, 1.25643121, 0.66099864, 3.335771),
        (0.8, 0.43084221, 0.86639268, 10.355887),
        (0.9, 0.20714650, 0.93330158, 21.898237),
    ],
)
def test_the_tail_of_md1(load: float, theta: float, factor: float, p99: float) -> None:
    """Decay rate, factor, and the 99th percentile that they give."""
    found = tails.md1_decay(load, 1)
    assert (found.decay_per_s, found.factor) == pytest.approx((theta, factor), abs=5.1e-9)
    assert tails.md1_wait_tail_quantile(load, 1, 0.99) == pytest.approx(p99, abs=5.1e-7)


def test_the_tail_of_erlang_service() -> None:
    """M/E2/1 at a load of 0.8 decays at 0.27335008."""
    found = tails.decay_rate(0.8, lambda theta: (1 - theta / 2) ** -2, 2)
    assert found == pytest.approx(0.27335008, abs=5.1e-9)


@pytest.mark.parametrize(("rate", "highest"), [(0.8, 0.1), (1.2, 2.0), (0.8, 0.0), (math.nan, 2.0), (0.8, math.inf)])
def test_a_decay_rate_out_of_range_is_refused(rate: float, highest: float) -> None:
    """A root that is not below the bound, an unstable queue, and what is no number give errors that name them."""
    with pytest.raises(InputError, match="must be"):
        tails.decay_rate(rate, lambda theta: (1 - theta / 2) ** -2, highest)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_tails_out_of_range_are_refused(bad: float) -> None:
    """Utilisations and probabilities are between 0 and 1, and times are not negative."""
    with pytest.raises(InputError, match="equilibrium_tail"):
        tails.fcfs_wait_tail(0.5, bad)
    with pytest.raises(InputError, match="utilisation"):
        tails.ps_sojourn_tail(bad, lambda s: s**-2, 1)
    with pytest.raises(InputError, match="t_s"):
        tails.ps_sojourn_tail(0.5, lambda s: s**-2, -abs(bad))


def test_heavy_tails_cost_fcfs_a_power() -> None:
    """Pareto service of power 2.5: waits under FCFS have power 1.5, sojourns under sharing keep 2.5."""

    def fcfs(t: float) -> float:
        return tails.fcfs_wait_tail(0.5, t**-1.5)

    def sharing_tail(t: float) -> float:
        return tails.ps_sojourn_tail(0.5, lambda s: s**-2.5, t)

    assert math.log2(fcfs(100) / fcfs(200)) == pytest.approx(1.5)
    assert math.log2(sharing_tail(100) / sharing_tail(200)) == pytest.approx(2.5)


def test_formulas_by_name() -> None:
    """The catalogue gives what the functions give, describes all of them, and rejects unknown parameters."""
    assert evaluate("mm1", {"arrival_rate": 0.8, "service_rate": 1})["mean_wait_s"] == pytest.approx(4)
    assert all(description(formula) for formula in FORMULAS.values())
    for wrong in ({"arrival_rate": 0.8}, {"arrival_rate": 0.8, "service_rate": 1, "x": 1}):
        with pytest.raises(InputError, match="parameter"):
            evaluate("mm1", wrong)
    with pytest.raises(InputError, match="whole number"):
        evaluate("mm1k", {"arrival_rate": 0.8, "service_rate": 1, "room": 2.5})
