"""The closed forms by name, for the command line: all formulas whose parameters are numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.theory import bulk, choices, disciplines, many_servers, renewal, routing, sharing, single_server, tails

Formula = Callable[..., Any]

_FUNCTIONS: tuple[Formula, ...] = (
    single_server.mm1,
    single_server.mm1_sojourn_quantile,
    single_server.mm1_wait_quantile,
    single_server.md1,
    single_server.md1_wait_cdf,
    single_server.md1_wait_quantile,
    single_server.mg1,
    single_server.mg1_wait_variance,
    single_server.kingman_bound,
    single_server.kingman_approximation,
    disciplines.ps_mean_sojourn,
    many_servers.erlang_b,
    many_servers.erlang_c,
    many_servers.mmc,
    many_servers.mmc_wait_quantile,
    many_servers.allen_cunneen_approximation,
    many_servers.mm1k,
    renewal.gamma_m1_root,
    renewal.gamma_m1_mean_wait,
    renewal.gamma_m1_mean_sojourn,
    renewal.gamma_m1_sojourn_quantile,
    routing.random_split,
    routing.round_robin,
    routing.separate_over_central_wait,
    routing.supermarket,
    routing.supermarket_tail,
    choices.shortest_of_drawn_queues,
    choices.shortest_queue,
    bulk.bulk_root,
    bulk.dynamic_batching,
    bulk.fixed_batching,
    bulk.slotted_continuous,
    bulk.continuous_over_static,
    sharing.shared_decoding,
    sharing.free_slots,
    tails.md1_decay,
    tails.md1_wait_tail_quantile,
)
FORMULAS: Mapping[str, Formula] = {function.__name__: function for function in _FUNCTIONS}


def parameters(formula: Formula) -> dict[str, str]:
    """Return the parameters of a formula and their types, as in its signature."""
    return {
        name: str(parameter.annotation) + ("" if parameter.default is parameter.empty else ", optional")
        for name, parameter in inspect.signature(formula).parameters.items()
    }


def explained(formula: Formula) -> dict[str, str]:
    """Return of each parameter its type and what the docstring says of it, its domain included."""
    about = _described(inspect.getdoc(formula) or "")
    return {name: f"{kind}: {about.get(name, '')}" for name, kind in parameters(formula).items()}


def _described(doc: str) -> dict[str, str]:
    """Return what the section Parameters says of each name; lines of several names are about all of them."""
    section = doc.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if not line.startswith(" "):
            names = line.partition(" : ")[0].split(", ")
            continue
        for name in names:
            found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return found


def description(formula: Formula) -> str:
    """Return what a formula computes, from the summary line of its docstring."""
    return (inspect.getdoc(formula) or "").partition("\n")[0].removeprefix("Return ").removesuffix(".")


def evaluate(name: str, given: Mapping[str, float]) -> dict[str, float]:
    """Evaluate a formula and return its results by name.

    Parameters
    ----------
    name : str
        A key of `FORMULAS`.
    given : mapping of str to float
        The parameters.

    Returns
    -------
    dict
        Finite numbers, or ``inf`` for what is infinite.

    Raises
    ------
    InputError
        If a parameter is missing, unknown, outside its valid range, or must be a whole number and is not.
    """
    formula = FORMULAS[name]
    known = inspect.signature(formula).parameters
    for key in given:
        if key not in known:
            raise InputError(f"{name}: {unknown('parameter', key, known)}")
    missing = [key for key, parameter in known.items() if parameter.default is parameter.empty and key not in given]
    if missing:
        raise InputError(f"{name}: missing parameter '{missing[0]}'; parameters: {', '.join(known)}")
    values = {key: _number(name, key, str(known[key].annotation), value) for key, value in given.items()}
    try:
        return _named(formula(**values))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _named(found: Any) -> dict[str, float]:
    """Return the results of a formula by name: those of a record have names, a number is the value."""
    if is_dataclass(found) and not isinstance(found, type):
        return asdict(found)
    return {"value": found}


def _number(name: str, key: str, kind: str, value: float) -> float | int:
    if kind != "int":
        return value
    if not isinstance(value, int) and not value.is_integer():
        raise InputError(f"{name}: {key} = {value:g}: must be a whole number")
    return int(value)
