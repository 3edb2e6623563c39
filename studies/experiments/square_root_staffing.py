"""Square-root staffing of seats: how often a request waits, and the function of Halfin and Whitt."""

import numpy as np
from drawing import COLORS, POOL, constant, figure, geometric, linear, point, whole
from scipy.stats import binom, norm, poisson
from trials import Trial, intervals, main, runs, shown, stationary

from simqueue import theory

STEP_S, OUTPUT = 0.01, 100
REQUESTS = {10: 4_000, 40: 12_000, 160: 32_000}
"""Busy seats on average -> requests of a run: some minutes of simulated time."""
BETAS = (0.25, 0.75, 1.5)
OTHER, OTHER_BETA = 40, 0.75
SLOPE = 0.5
"""Share of a step at the offered load that grows with the batch, in the case of growing steps."""
WARM_UP = 0.2
CONSTANT_STEPS = {"kind": "constant", "seconds": STEP_S}


def halfin_whitt(beta):
    """Limit of the probability of waiting with a + beta sqrt(a) servers."""
    return 1 / (1 + beta * norm.cdf(beta) / norm.pdf(beta))


def seats_for(offered, beta):
    return round(offered + beta * np.sqrt(offered))


def exact(offered, seats):
    """Probability of waiting for longer than a step, with constant steps and geometric outputs.

    The chain of the requests at the starts of steps. Of the requests that come in a step, the last ones find no seat.
    """
    rate, size = offered / OUTPUT, seats + int(15 * np.sqrt(offered))
    number = np.arange(size)
    come = poisson.pmf(number, rate)
    shifted = np.array([np.pad(come, (left, 0))[:size] for left in number])
    late = np.minimum(number, np.maximum(number[:, None] + number - seats, 0)) @ come
    chain, waiting = np.zeros((size, size)), np.zeros(size)
    for n in number:
        busy = min(n, seats)
        law, left = binom.pmf(np.arange(busy + 1), busy, 1 - 1 / OUTPUT), slice(n - busy, n + 1)
        chain[n], waiting[n] = law @ shifted[left], law @ late[left]
    chain[:, -1] += 1 - chain.sum(axis=1)
    return float(stationary(chain) @ waiting / rate)


def waits(offered, seats, requests, replications, output, step, rate=None):
    """Interval of the share of requests that wait for longer than the longest step."""
    rate = offered / (OUTPUT * STEP_S) if rate is None else rate
    longest_ms = 1000 * (step["seconds"] if "seconds" in step else step["overhead_s"] + step["per_decode_s"] * seats)
    found = runs(
        {"p": whole(seats)},
        {"process": "poisson", "rate_rps": rate},
        requests,
        replications=replications,
        step_time=step,
        kv_cache=POOL,
        prompt_tokens=constant(1),
        output_tokens=output,
    )
    first = int(WARM_UP * requests)
    return intervals(
        [(name, float((one["queue_ms"][first:] > longest_ms * (1 + 1e-9)).mean())) for name, one in found]
    )["p"]


def growing(offered):
    """Rate and steps a + b n that keep `offered` requests in service on average, and the variance of their number."""
    per_seat_s = SLOPE * STEP_S / offered
    step = linear((1 - SLOPE) * STEP_S, per_seat_s)
    rate = offered / (OUTPUT * STEP_S)
    sharing = theory.shared_decoding(rate, OUTPUT, step["overhead_s"], per_seat_s)
    return rate, step, sharing.mean_batch, sharing.variance_batch


def geometric_outputs(ax, requests, replications):
    """Draw the share that waits over β; return rows, gaps of the chain to the limit, and how often it is confirmed."""
    line = np.linspace(0.02, 2, 100)
    ax.plot(line, halfin_whitt(line), color="0.2", label="Halfin and Whitt")
    rows, gaps, agree = [], {}, []
    for (offered, many), color in zip(requests.items(), COLORS, strict=False):
        for beta in BETAS:
            seats = seats_for(offered, beta)
            real = (seats - offered) / np.sqrt(offered)
            found = waits(offered, seats, many, replications, geometric(OUTPUT), CONSTANT_STEPS)
            limit, chain = halfin_whitt(real), exact(offered, seats)
            gaps[offered] = max(gaps.get(offered, 0), abs(chain - limit))
            agree.append(abs(found.value - chain) <= found.half_width)
            point(ax, real, found, color, f"{offered} busy seats, simulated" if beta == BETAS[0] else None)
            expected = [f"{one:.3f}" for one in (limit, theory.erlang_c(seats, offered), chain)]
            rows.append((f"geometric, {offered} busy", f"{seats}", f"{real:.2f}", *expected, shown(found)))
    ax.set(
        xlabel=r"$\beta$ = (seats − busy) / $\sqrt{busy}$",
        ylabel="share of requests that wait",
        title="Constant steps, geometric outputs",
    )
    ax.legend()
    return rows, gaps, agree


def other_cases(ax, seats, requests, replications):
    """Draw the share that waits with other outputs and steps; return rows, what was found, and what is predicted."""
    rate, step, mean, variance = growing(OTHER)
    cases = {
        "geometric": (geometric(OUTPUT), CONSTANT_STEPS, None),
        "constant": (constant(OUTPUT), CONSTANT_STEPS, None),
        "lognormal,\ncv 2": ({"distribution": "lognormal", "mean": OUTPUT, "cv": 2.0}, CONSTANT_STEPS, None),
        "steps grow\nwith the batch": (geometric(OUTPUT), step, rate),
    }
    beta = (seats - OTHER) / np.sqrt(OTHER)
    predicted, corrected = halfin_whitt(beta), halfin_whitt((seats - mean) / np.sqrt(variance))
    rows, shares = [], []
    for place, (name, (output, steps, own_rate)) in enumerate(cases.items()):
        found = waits(OTHER, seats, requests, replications, output, steps, own_rate)
        shares.append(found)
        point(ax, place, found, COLORS[place], None)
        case = name.replace("\n", " ")
        rows.append((case, f"{seats}", f"{beta:.2f}", f"{predicted:.3f}", "", "", shown(found)))
    ax.axhline(predicted, color="0.2", label="Halfin and Whitt")
    ax.axhline(corrected, color="0.2", linestyle="--", label="the same, with the variance of growing steps")
    ax.set(ylabel="share of requests that wait", ylim=(0, 1), title=f"{OTHER} busy, {seats} seats")
    ax.set_xticks(range(len(cases)), list(cases))
    ax.legend()
    return rows[1:], shares, (predicted, corrected, variance)


def measure(small):
    """Test square-root staffing for seats."""
    requests, replications = ({10: 60}, 2) if small else (REQUESTS, 5)
    made, axes = figure(panels=2, width=13)
    rows, largest, agree = geometric_outputs(axes[0], requests, replications)
    seats = seats_for(OTHER, OTHER_BETA)
    other_rows, others, expected = other_cases(axes[1], seats, requests.get(OTHER, 60), replications)
    predicted, corrected, variance = expected
    return Trial(
        title="Square-root staffing for seats",
        claim="Halfin and Whitt (Operations Research 1981): with a busy servers on average and a + β √a servers, the "
        "share of arrivals that wait tends to 1 / (1 + β Φ(β) / φ(β)) as a grows. So the reserve that keeps waiting "
        "rare grows only with the square root of the load.",
        source="A standard result, from textbooks; the article was not read.",
        setting=f"Seats with steps of {1000 * STEP_S:g} ms and outputs of {OUTPUT} tokens on average: a request keeps "
        f"its seat for {OUTPUT * STEP_S:g} s. A request waits if it is not admitted at the end of the step in which "
        f"it arrives. {min(requests.values()):,} to {max(requests.values()):,} Poisson arrivals, the first fifth is "
        f"warm-up, {replications} replications. The exact chain is that of the requests at the starts of steps. "
        "Growing steps: half of the step at the offered load is in proportion to the batch.",
        columns=("outputs and load", "seats", "β", "Halfin-Whitt", "Erlang C", "exact chain", "simulated"),
        rows=[*rows, *other_rows],
        verdict="confirmed with limits" if np.mean(agree) > 0.7 else "not confirmed",
        because="The exact chain differs from the limit by at most "
        + ", ".join(f"{gap:.3f} at {offered} busy seats" for offered, gap in largest.items())
        + f", and {sum(agree)} of {len(agree)} simulated intervals contain the chain. Where the "
        f"function gives {predicted:.3f}, {shown(others[0])} wait with geometric, {shown(others[1])} "
        f"with constant and {shown(others[2])} with lognormal outputs. Limits: steps must not grow with the "
        f"batch. Where half of the step does, {shown(others[3])} wait: a busy server is slower, so the number "
        f"of running requests varies more than √a. With its own variance, {variance:.0f} instead of {OTHER}, the same "
        f"function gives {corrected:.3f}.",
        figure=made,
    )


if __name__ == "__main__":
    main("square_root_staffing", measure)
