"""From a file and flags to a `Scenario`, or to a list of everything that is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from simqueue.errors import InputError, Problem, about
from simqueue.hardware import check_fits, kv_pool_blocks
from simqueue.scenario.model import Scenario, plain
from simqueue.scenario.overrides import apply, override_seed, parse_override
from simqueue.scenario.problems import validated
from simqueue.scenario.resolve import EffectivePolicy, settle
from simqueue.scenario.written import Written
from simqueue.scenario.yamlfile import Document, read
from simqueue.steptime.build import build as build_step_time


def load(path: str | Path, overrides: Iterable[str] = (), seed: int | None = None) -> Scenario:
    """Load a scenario file.

    Parameters
    ----------
    path : str or Path
        A YAML file. Relative paths inside it start at its folder.
    overrides : iterable of str
        ``a.b.c=VALUE`` each, which overrides the file.
    seed : int or None
        Overrides the file's seed.

    Raises
    ------
    InputError
        With one line for each thing that is wrong: file and line (or the flag), path, value, what is allowed.
    """
    path = Path(path)
    return _checked(read(path), overrides, seed, path.parent, path.stem)


def from_mapping(
    data: Mapping[str, Any], overrides: Iterable[str] = (), seed: int | None = None, base_dir: str | Path = ""
) -> Scenario:
    """Make a scenario from the keys of a scenario file, given in Python.

    Parameters
    ----------
    data : mapping
        Values may be plain or models, such as `KVCacheSettings`.
    overrides, seed
        As for `load`.
    base_dir : str or Path
        Where relative paths start; by default the current folder.

    Raises
    ------
    InputError
        As for `load`, without file and line.
    """
    return _checked(Document("", plain(data)), overrides, seed, Path(base_dir), None)


def _checked(
    document: Document, overrides: Iterable[str], seed: int | None, base_dir: Path, file_name: str | None
) -> Scenario:
    parsed = [parse_override(text) for text in overrides]
    if seed is not None:
        parsed.append(override_seed(seed))
    data, flags = apply(document.data, parsed)
    written = Written(replace(document, data=data), flags, base_dir)
    scenario = validated(Scenario, written).written_in(written, file_name)
    problems = list(_hardware_problems(scenario))
    if problems:
        raise written.complaint(problems)
    return scenario


def _hardware_problems(scenario: Scenario) -> Iterator[Problem]:
    """Names and files that cannot be had, versions and flags that do not exist, weights that do not fit the GPU."""
    for name in scenario.policies:
        try:
            _try_hardware(settle(scenario, name))
        except InputError as error:
            yield from scenario.written.problems(error, name)


def _try_hardware(policy: EffectivePolicy) -> None:
    cache = policy.kv_cache
    if cache.layout == "contiguous" and cache.reserve == "model_max":
        longest = policy.max_model_len or (policy.model.max_position if policy.model else None)
        if longest is None:
            raise InputError("must be given with kv_cache.reserve: model_max", "max_model_len")
    file_key = {"roofline": ("preset",), "table": ("path",)}.get(policy.step_time.kind, ())
    with about("step_time", *file_key):
        build_step_time(policy.step_time, policy.model, policy.gpu, policy.tensor_parallel)
    if policy.gpu is None or policy.model is None:
        return
    if cache.blocks == "auto":
        kv_pool_blocks(policy.gpu, policy.model, policy.tensor_parallel, cache.memory_share, cache.block_size)
    else:
        check_fits(policy.gpu, policy.model, policy.tensor_parallel, cache.memory_share)
