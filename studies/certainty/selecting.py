"""How often ``simqueue best`` is right, and what it spends, against equal allocation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simqueue.experiment.best import next_stage
from simqueue.experiment.runner import run
from simqueue.statistics.selection import FIRST_STAGE, Rule, dropped, last_stage

TRIES: Final = 400
CONFIDENCE: Final = 0.95
BANK: Final = 200
SEED: Final = 30
Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
"""Returns replications of all alternatives: one row each."""

_NORMAL: Final[Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "2, the zone apart": ((0, 1), (4, 4)),
    "5, the zone apart": ((0, 1, 1, 1, 1), (4,) * 5),
    "10, the zone apart": ((0, *(1,) * 9), (4,) * 10),
    "5, in steps of the zone": ((0, 1, 2, 3, 4), (4,) * 5),
    "10, one rival": ((0, 1, *(6,) * 8), (4,) * 10),
    "5, one hopeless and wild": ((0, 1, 3, 10, 100), (3, 3, 5, 10, 60)),
}
"""Name -> true means and standard deviations; the zone is 1, and half of each variance is shared."""

POLICIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "eight slots": {"scheduler": "continuous", "max_num_seqs": 8, "max_num_batched_tokens": 1_000_000},
    "nine slots": {"scheduler": "continuous", "max_num_seqs": 9, "max_num_batched_tokens": 1_000_000},
    "shortest first": {
        "scheduler": "continuous",
        "max_num_seqs": 8,
        "max_num_batched_tokens": 1_000_000,
        "order": "shortest_prompt",
    },
    "waves": {"scheduler": "static", "max_num_seqs": 16},
    "chunks": {"scheduler": "chunked", "max_num_seqs": 8, "max_num_batched_tokens": 512},
}


@dataclass(frozen=True, slots=True)
class Selected:
    """One problem.

    Attributes
    ----------
    problem : str
    right : float
        Share of the searches that ended with the best or one within the zone of it.
    runs : float
        Mean number of runs of single alternatives.
    without_dropping : float
        The same if every alternative is run until the end.
    by_rule : float
        Runs of equal allocation by the rule of Clark and Yang, which knows the zone and ten replications.
    by_oracle : int
        The least runs of equal allocation of which 95 % select rightly, found by trying.
    """

    problem: str
    right: float
    runs: float
    without_dropping: float
    by_rule: float
    by_oracle: int


def bank() -> dict[str, list[float]]:
    """Return the mean TTFT of 200 replications of five policies, in ms."""
    result = run(
        {
            "name": "five-policies",
            "seed": 9,
            "replications": BANK,
            "step_time": {
                "kind": "linear",
                "overhead_s": 0.02,
                "per_decode_s": 0.001,
                "per_prefill_token_s": 5e-5,
            },
            "kv_cache": {"layout": "paged", "block_size": 16, "blocks": 1_000_000},
            "workload": {
                "arrivals": {"process": "gamma", "rate_rps": 8, "cv": 2},
                "prompt_tokens": {"distribution": "lognormal", "mean": 500, "cv": 1},
                "output_tokens": {"distribution": "geometric", "mean": 20},
                "num_requests": 200,
            },
            "policies": POLICIES,
        },
        check=False,
    )
    found: dict[str, list[float]] = {name: [] for name in result.policies}
    for row in result.replication_rows:
        found[str(row["policy"])].append(float(row["mean_ttft_ms"] or 0.0))
    return found


def measured(real: Mapping[str, list[float]]) -> list[Selected]:
    """Search in all problems: normal ones, and replications of the simulation drawn with replacement."""
    return [_measured(*problem) for problem in _problems(real)]


def _problems(real: Mapping[str, list[float]]) -> Iterator[tuple[str, Draw, NDArray[np.float64], float]]:
    for name, (means, deviations) in _NORMAL.items():
        yield name, _normal(np.array(means, float), np.array(deviations, float)), np.array(means, float), 1.0
    values = np.array(list(real.values())).T
    means = values.mean(axis=0)
    yield (
        "five policies of a scenario",
        lambda rng, n: values[rng.integers(0, len(values), n)],
        means,
        0.05 * float(means.min()),
    )


def _normal(means: NDArray[np.float64], deviations: NDArray[np.float64]) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        shared, own = rng.normal(size=(n, 1)), rng.normal(size=(n, len(means)))
        return np.asarray(means + deviations * math.sqrt(0.5) * (shared + own))

    return draw


def _measured(problem: str, draw: Draw, means: NDArray[np.float64], zone: float) -> Selected:
    rng = np.random.default_rng(SEED)
    rule = Rule(len(means), zone, CONFIDENCE)
    good = frozenset(np.flatnonzero(means < means.min() + zone).tolist())
    searches = [_search(draw, rng, rule) for _ in range(TRIES)]
    return Selected(
        problem,
        float(np.mean([best in good for best, _, _ in searches])),
        float(np.mean([runs for _, runs, _ in searches])),
        rule.alternatives * float(np.mean([stages for _, _, stages in searches])),
        rule.alternatives * float(np.mean([_by_rule(draw(rng, FIRST_STAGE), rule) for _ in range(TRIES)])),
        rule.alternatives * _by_oracle(draw, rng, good),
    )


def _search(draw: Draw, rng: np.random.Generator, rule: Rule) -> tuple[int, int, int]:
    """Return the alternative selected, the runs spent, and the replications of the last stage."""
    made = draw(rng, FIRST_STAGE)
    left, runs = tuple(map(str, range(rule.alternatives))), made.size
    while True:
        values = {name: made[:, int(name)].tolist() for name in left}
        gone = dropped(values, rule)
        left = tuple(name for name in left if name not in gone)
        kept = {name: values[name] for name in left}
        if len(left) == 1 or len(made) >= last_stage(kept, rule):
            return min(map(int, left), key=lambda one: float(made[:, one].sum())), runs, len(made)
        more = next_stage(len(made)) - len(made)
        made = np.vstack((made, draw(rng, more)))
        runs += more * len(left)


def _by_rule(first: NDArray[np.float64], rule: Rule) -> int:
    """Return the replications of each alternative by Clark and Yang (1986), from the pairs with the best."""
    t = float(stats.t.ppf(1 - rule.error, FIRST_STAGE - 1))
    best = int(first.mean(axis=0).argmin())
    variances = np.var(first - first[:, [best]], axis=0, ddof=1)
    return max(FIRST_STAGE, math.ceil(t**2 * float(variances.max()) / rule.zone**2))


def _by_oracle(draw: Draw, rng: np.random.Generator, good: frozenset[int]) -> int:
    """Return the least replications with which 95 % of the tries have the smallest mean in a good alternative."""

    def right(n: int) -> bool:
        best = [int(draw(rng, n).mean(axis=0).argmin()) for _ in range(2 * TRIES)]
        return float(np.mean([one in good for one in best])) >= CONFIDENCE

    high = 1
    while not right(high):
        high *= 2
    low = high // 2
    while high - low > max(1, low // 20):
        middle = (low + high) // 2
        low, high = (low, middle) if right(middle) else (middle, high)
    return high
