"""A scenario with every value decided. What runs or describes a scenario uses these records alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from pydantic import ValidationError

from simqueue.engines import GIVEN, CacheRules, ResolvedEngine
from simqueue.engines.base import Maker
from simqueue.errors import InputError, KeyPath, about, inside
from simqueue.frontend import FrontEndTimes
from simqueue.hardware import Gpu, Model
from simqueue.names import unknown
from simqueue.scenario.precision import PrecisionSettings
from simqueue.scenario.resolved_fleet import ResolvedFleet
from simqueue.scenario.values import dotted, leaves
from simqueue.scenario.variation import checked
from simqueue.scenario.written import Written
from simqueue.settings import Settings, problems_of
from simqueue.steptime import StepTime
from simqueue.workload.arrivals.settings import ArrivalProcessSettings
from simqueue.workload.checking import check
from simqueue.workload.settings import WorkloadSettings


@dataclass(frozen=True, slots=True)
class ResolvedCache:
    """The KV cache of a policy.

    Attributes
    ----------
    layout : {"paged", "contiguous"}
    rules : CacheRules
        The engine's, or those of the scenario's keys.
    blocks : int
        Usable blocks in the pool.
    reserve_tokens : int, "request_max" or None
        What a contiguous layout reserves: a number of tokens, or the prompt and output of each request. None: paged.
    """

    layout: Literal["paged", "contiguous"]
    rules: CacheRules
    blocks: int
    reserve_tokens: int | Literal["request_max"] | None

    @property
    def watermark_blocks(self) -> int:
        """Blocks that admissions leave free."""
        return int(self.rules.watermark * (self.blocks + self.rules.reserved_blocks))

    @property
    def tokens(self) -> int:
        """Tokens that the whole pool holds."""
        return self.blocks * self.rules.block_size


@dataclass(frozen=True, slots=True)
class ResolvedPolicy:
    """One policy with every value decided.

    Attributes
    ----------
    name : str
        Its key in the scenario.
    scheduler : str
        Name of the scheduler, or of the engine.
    settings : Settings
        The keys of the scheduler, or the flags of the engine as given.
    engine : ResolvedEngine or None
        The engine at its version; None for a policy that names a scheduler.
    make : callable
        See `Maker`. It holds the class of the policy, so that worker processes need not have registered it.
    model : Model or None
        None in a scenario that needs no model.
    gpu : Gpu or None
    tensor_parallel : int
        GPUs that share the model.
    usd_per_gpu_hour : float or None
        Price of one of them; None: unknown.
    step_time : StepTime
        How long a step takes.
    front_end : FrontEndTimes or None
        What requests go through before the scheduler; None: nothing.
    kv_cache : ResolvedCache
    longest_request_tokens : int or None
        Most tokens (prompt + output) of a request; None: no limit.
    warnings : tuple of str
        What is doubtful about it, without its name.
    fleet : ResolvedFleet or None
        Its replicas and their router; None: one replica that serves all requests.
    """

    name: str
    scheduler: str
    settings: Settings
    engine: ResolvedEngine | None
    make: Maker
    model: Model | None
    gpu: Gpu | None
    tensor_parallel: int
    usd_per_gpu_hour: float | None
    step_time: StepTime
    front_end: FrontEndTimes | None
    kv_cache: ResolvedCache
    longest_request_tokens: int | None
    warnings: tuple[str, ...] = ()
    fleet: ResolvedFleet | None = None


class Changes(TypedDict, total=False):
    """What `ResolvedScenario.with_` can change."""

    seed: int
    replications: int
    precision: PrecisionSettings | None
    horizon_s: float | None
    warmup_s: float | Literal["auto"]
    policies: Iterable[str]
    """The policies to keep."""
    arrivals: ArrivalProcessSettings
    rate_rps: float
    num_requests: int
    """Instead of `arrivals_for_s`."""


_RUN_KEYS = ("seed", "replications", "precision", "horizon_s", "warmup_s")
_WORKLOAD_KEYS = ("arrivals", "rate_rps", "num_requests")


@dataclass(frozen=True, slots=True)
class ResolvedScenario:
    """A scenario with every value decided. It can be sent to other processes.

    Attributes
    ----------
    name : str
    seed : int
    policies : tuple of ResolvedPolicy
    workloads : mapping of str or None to WorkloadSettings
        By name; the key of a workload without a name is None.
    slo : mapping of str to float or None
        Limits of requests whose class has none of its own.
    class_slos : mapping of str to mapping
        Limits of each class that has its own, by its name in tables.
    horizon_s : float or None
    warmup_s : float or "auto"
    replications : int
    precision : PrecisionSettings or None
    rejects_unservable : bool
        Whether a request that can never fit the KV pool is rejected at arrival; else it waits for ever.
    max_queued_requests : int or None
    clock_resolution_s : float or None
    fast : bool
        Whether equal steps are folded.
    written : Written
        Where keys were written, for errors; also where relative paths start.
    values : mapping
        Every value as JSON has it; it is a scenario again, and resolves to the same values.
    origins : mapping of str to str
        For each dotted path of `values`: ``file``, ``--set``, ``--seed``, ``default``, or ``policy`` (a policy's own
        key, if the scenario has one of the same name); for values that were computed, from what. Scenarios made in
        Python have ``given`` instead of ``file``.
    """

    name: str
    seed: int
    policies: tuple[ResolvedPolicy, ...]
    workloads: Mapping[str | None, WorkloadSettings]
    slo: Mapping[str, float] | None
    class_slos: Mapping[str, Mapping[str, float]]
    horizon_s: float | None
    warmup_s: float | Literal["auto"]
    replications: int
    precision: PrecisionSettings | None
    rejects_unservable: bool
    max_queued_requests: int | None
    clock_resolution_s: float | None
    fast: bool
    written: Written
    values: Mapping[str, Any]
    origins: Mapping[str, str]

    @property
    def base_dir(self) -> Path:
        """Where relative paths of the scenario start."""
        return self.written.base_dir

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each doubt about a policy, with its name."""
        return tuple(f"{policy.name}: {line}" for policy in self.policies for line in policy.warnings)

    @property
    def policy_names(self) -> tuple[str, ...]:
        """The names of the policies, in order."""
        return tuple(policy.name for policy in self.policies)

    @property
    def workload(self) -> WorkloadSettings | None:
        """The workload, if it is the only one."""
        return self.workloads.get(None)

    def policy(self, name: str) -> ResolvedPolicy:
        """Return one policy.

        Raises
        ------
        InputError
            The scenario has no such policy.
        """
        for policy in self.policies:
            if policy.name == name:
                return policy
        raise InputError(unknown("policy", name, self.policy_names))

    def check_traffic(self) -> None:
        """Raise what `make_traffic` would raise, without making requests if that can be told without."""
        for name, workload in self.workloads.items():
            with self.written.locating(), inside(*workload_path(name)):
                check(workload, seed=self.seed, base_dir=self.base_dir, name=name)

    def with_(self, **changes: Unpack[Changes]) -> ResolvedScenario:
        """Return the scenario with some values changed; nothing else is resolved again.

        Raises
        ------
        InputError
            If a value is not allowed in a scenario, if arrivals change and there is no single workload with arrivals,
            if their process has no `rate_rps`, or if a policy to keep does not exist.
        """
        names = changes.get("policies")
        listed = {} if names is None or isinstance(names, str) else {"policies": tuple(names)}
        fields = checked({key: getattr(self, key) for key in _RUN_KEYS}, {**changes, **listed})
        workload = {key: value for key in _WORKLOAD_KEYS if (value := fields.pop(key, None)) is not None}
        kept = fields.pop("policies", None)
        changed = self if kept is None else self._with_policies(kept)
        if workload:
            changed = changed._with_workload(**workload)
        return changed._with(fields, {key: _plain(value) for key, value in fields.items()})

    def _with_policies(self, names: tuple[str, ...]) -> ResolvedScenario:
        policies = tuple(self.policy(name) for name in names)
        return self._with({"policies": policies}, {"policies": {name: self.values["policies"][name] for name in names}})

    def _with_workload(
        self,
        arrivals: ArrivalProcessSettings | None = None,
        rate_rps: float | None = None,
        num_requests: int | None = None,
    ) -> ResolvedScenario:
        workload = self.workload
        if workload is None or workload.arrivals is None:
            raise InputError("only the arrivals of a single workload can vary", "workload", "arrivals")
        process: ArrivalProcessSettings = arrivals or workload.arrivals
        if rate_rps is not None:
            with _reported("workload", "arrivals"):
                process = process.with_rate(rate_rps)
        update: dict[str, Any] = {"arrivals": process}
        if num_requests is not None:
            update |= {"num_requests": num_requests, "arrivals_for_s": None}
        changed = workload.model_copy(update=update)
        with _reported("workload"):
            WorkloadSettings.model_validate(changed.model_dump(by_alias=True))
        return self._with({"workloads": {None: changed}}, {"workload": _plain(changed)})

    def _with(self, fields: Mapping[str, Any], values: Mapping[str, Any]) -> ResolvedScenario:
        """Return the scenario with fields changed, and the top-level values that belong to them."""
        kept = {path: origin for path, origin in self.origins.items() if path.partition(".")[0] not in values}
        given = {
            path: self.origins.get(path, GIVEN) if "policies" in values else GIVEN
            for path in map(dotted, leaves(values))
        }
        return replace(self, values={**self.values, **values}, origins=kept | given, **fields)


@contextmanager
def _reported(*outer: str) -> Iterator[None]:
    """Turn errors of pydantic into an `InputError` about keys inside `outer`."""
    with about(*outer), inside(*outer):
        try:
            yield
        except ValidationError as error:
            raise InputError.of(problems_of(error)) from None


def workload_path(name: str | None) -> KeyPath:
    """Return the path of a workload in the scenario."""
    return ("workload",) if name is None else ("workloads", name)


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True) if isinstance(value, Settings) else value
