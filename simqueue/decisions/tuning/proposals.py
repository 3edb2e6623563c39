"""Which systems of a large group are tried at all: Optuna proposes them, by what the short runs before have shown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from simqueue.decisions.tuning.contender import Contender, State
from simqueue.decisions.tuning.runs import Runs
from simqueue.errors import InputError
from simqueue.sweeps.axes import plain_value

if TYPE_CHECKING:
    import optuna

MOST_TRIED: Final = 300
"""In larger groups, not all systems are tried."""
_TRIALS: Final = 200
_AT_ONCE: Final = 10
"""Systems that are proposed together, so that their runs can share processes. The same number always."""
_BEYOND: Final = 1e12
"""Above all values of metrics."""
_NOT_THERE: Final = 10.0
"""What a combination that is no system of the group counts as: so many times the limit."""


def proposed(group: Sequence[Contender], runs: Runs) -> list[Contender]:
    """Return the systems of a large group that were tried, each with a short run.

    A Parzen estimator (TPE) proposes values for each key, first at random. It learns from the metric, and from how far
    the limits are passed.

    Parameters
    ----------
    group : sequence of Contender
    runs : Runs

    Raises
    ------
    InputError
        If Optuna is not installed.
    """
    study = _study(runs.seed)
    choices = [_distinct(values) for values in zip(*(one.system.candidate.values for one in group), strict=True)]
    by_place = {_place(one, choices): one for one in group}
    tried: dict[int, Contender] = {}
    for _ in range(_TRIALS // _AT_ONCE):
        trials = [study.ask() for _ in range(_AT_ONCE)]
        asked = [by_place.get(tuple(_suggested(trial, choices))) for trial in trials]
        fresh = {one.number: one for one in asked if one is not None and one.number not in tried}
        runs.short(list(fresh.values()))
        tried |= fresh
        for trial, one in zip(trials, asked, strict=True):
            _tell(study, trial, one)
    return list(tried.values())


def _study(seed: int) -> optuna.Study:
    try:
        import optuna  # noqa: PLC0415 - an extra, which few searches need
    except ImportError:
        raise InputError(
            f"more than {MOST_TRIED} systems of one cost are proposed by Optuna: pip install 'simqueue[decide]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))


def _distinct(values: Sequence[Any]) -> list[str]:
    """Return the values of a key, each once, in their order."""
    return list(dict.fromkeys(repr(plain_value(value)) for value in values))


def _place(one: Contender, choices: Sequence[Sequence[str]]) -> tuple[int, ...]:
    values = one.system.candidate.values
    return tuple(known.index(repr(plain_value(value))) for value, known in zip(values, choices, strict=True))


def _suggested(trial: optuna.Trial, choices: Sequence[Sequence[str]]) -> Iterator[int]:
    """Yield the place of a value for each key: values are taken to be in a meaningful order, as sizes are."""
    for number, known in enumerate(choices):
        yield trial.suggest_int(f"key {number}", 0, len(known) - 1)


def _tell(study: optuna.Study, trial: optuna.Trial, one: Contender | None) -> None:
    """Tell what a run has shown; a system whose run failed counts as one that is not there.

    The estimator only uses the order of values. So what passes a limit comes after all that does not, the further the
    later.
    """
    miss = None if one is None or one.state is State.FAILED else one.missed or one.miss()
    beyond = _NOT_THERE if miss is None else min(miss.ratio - 1, _NOT_THERE)
    found = None if one is None else one.short or next(iter(one.runs), None)
    keeps = beyond <= 0 and found is not None and math.isfinite(found.value)
    study.tell(trial, found.value if keeps and found is not None else _BEYOND * (1 + max(beyond, 0.0)))
