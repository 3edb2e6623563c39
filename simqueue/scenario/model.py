"""The keys of a scenario: workload, hardware, policies and how they are run."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, ValidationError, model_validator

from simqueue.datafiles.limits import MOST_KEYS
from simqueue.datafiles.yamlfile import Document
from simqueue.errors import Problem
from simqueue.frontend import FrontEndSettings
from simqueue.hardware import DtypeSettings, GpuChoice, ModelChoice
from simqueue.hardware.price import UsdPerGpuHour
from simqueue.kvcache.settings import KVCacheSettings
from simqueue.names import LONGEST_NAME, PLAIN_RULE, is_plain
from simqueue.scenario.fleet import FleetSettings
from simqueue.scenario.groups import split
from simqueue.scenario.missing import missing_hardware
from simqueue.scenario.plaindata import plain
from simqueue.scenario.policies import PolicyEntry, PolicySettings
from simqueue.scenario.precision import PrecisionSettings
from simqueue.scenario.resolve import resolve
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.scenario.summary import SummarySettings
from simqueue.scenario.variation import Horizon, Replications, Seed, Warmup, replication_problems, time_problems
from simqueue.scenario.written import Written
from simqueue.settings import Settings, details_of
from simqueue.steptime import RooflineSettings, StepTimeFactor, StepTimeSettings
from simqueue.workload.settings import WorkloadSettings
from simqueue.workload.slo import SloSettings, of_run

_NAME = re.compile(r"[^\W_][\w.-]*")  # letters and digits of all scripts
_UNFIT = re.compile(r"[^\w.-]+")
_NULL_COUNTS = ("gpu", "usd_per_gpu_hour", "step_time", "front_end", "max_model_len", "fleet")
"""Keys of policies for which null is a value: no GPU, its example price, the roofline, no limit, no fleet."""


class Scenario(Settings):
    """One experiment: the same traffic through one or several policies.

    Use `load` and `from_mapping` of `simqueue.scenario` to make one: they report all mistakes in one `InputError`, one
    line per mistake. The class itself raises pydantic's ValidationError.
    """

    name: str = Field(
        "scenario",
        description="name of the results; letters, digits, '.', '_' and '-'; by default the file's name",
    )
    seed: Seed = Field(0, description="seed of all random streams")
    model: ModelChoice | None = Field(
        None,
        description="a name from `simqueue list models`, a path to a Hugging Face config.json, or an inline mapping",
    )
    dtype: DtypeSettings | None = Field(
        None, description="number formats of weights and KV cache; null: those of the published model"
    )
    gpu: GpuChoice | None = Field(
        None, description="a name from `simqueue list gpus`, a path to a YAML file, or an inline mapping"
    )
    tensor_parallel: int = Field(1, ge=1, description="GPUs that share the model", json_schema_extra={"unit": "GPUs"})
    usd_per_gpu_hour: UsdPerGpuHour | None = Field(
        None,
        description="price of one GPU: a number for the GPU that is given beside it, or GPU -> price; null: the "
        "example in the GPU's own file, if there is one",
        json_schema_extra={"unit": "USD/hour"},
    )
    step_time: StepTimeSettings | None = Field(
        None,
        description="duration of a step; null: the roofline of model and gpu, which must both be given",
    )
    step_time_factor: StepTimeFactor = Field(
        1.0, description="all step times are multiplied by it: 1.1 is a GPU that is 10 % slower than its model says"
    )
    front_end: FrontEndSettings | None = Field(
        None, description="time of requests outside the scheduler and the GPU; null: none"
    )
    kv_cache: KVCacheSettings = Field(
        default_factory=KVCacheSettings, description="layout, size and rules of the KV cache"
    )
    fleet: FleetSettings | None = Field(
        None,
        description="replicas of each policy, and the router before them; null: one replica, without a router",
    )
    workload: WorkloadSettings | None = Field(None, description="the requests; or give workloads")
    workloads: dict[str, WorkloadSettings] | None = Field(
        None,
        min_length=1,
        max_length=MOST_KEYS,
        description="name -> workload: several workloads at once, each with its own row in the summary",
    )
    policies: dict[str, PolicyEntry] = Field(
        min_length=1, max_length=MOST_KEYS, description="name -> policy; all policies get the same requests"
    )
    slo: SloSettings | None = Field(
        None, description="service level objectives (SLOs), for goodput, the table and figures"
    )
    summary: SummarySettings = Field(
        default_factory=SummarySettings, description="percentiles and latencies that the table and the page show"
    )
    horizon_s: Horizon | None = Field(
        None,
        description="end of the run; null: when all requests have ended",
        json_schema_extra={"unit": "s"},
    )
    warmup_s: Warmup | Literal["auto"] = Field(
        0.0,
        description="start of the steady window that latencies and rates of the summary describe; auto: each run is "
        "cut after a number of requests, chosen by MSER-5 on the TTFT averaged over replications",
        json_schema_extra={"unit": "s"},
    )
    replications: Replications = Field(
        1,
        description="independent runs per policy; each run has its own requests, which are the same for all policies; "
        "from 2 on the summary has confidence intervals. One run if nothing in the traffic is random and "
        "no fleet draws anything",
    )
    precision: PrecisionSettings | None = Field(
        None, description="replicate until a mean is known precisely enough, instead of a fixed number of replications"
    )
    max_model_len: int | None = Field(
        None,
        ge=1,
        description="maximum number of tokens (prompt + output) per request; longer requests are rejected; null: the "
        "model's limit",
        json_schema_extra={"unit": "tokens"},
    )
    max_queued_requests: int | None = Field(
        None,
        ge=0,
        description="requests that arrive while no seat is free and this many are waiting are rejected; null: no limit",
        json_schema_extra={"unit": "requests"},
    )
    unservable: Literal["reject", "wait"] = Field(
        "reject",
        description="requests that can never fit into the KV pool are rejected at arrival, or wait for ever",
    )
    unstartable: Literal["refuse", "warn"] = Field(
        "refuse",
        description="an engine that would not start, since one request of max_model_len does not fit into its KV pool "
        "(blocks: auto), is an error, or runs with a warning",
    )
    clock_resolution_s: float | None = Field(
        None,
        gt=0,
        le=1,
        description="length of a clock tick, to which the ends of steps are rounded; null: no rounding",
        json_schema_extra={"unit": "s"},
    )
    fast: bool = Field(True, description="fold equal steps into one event; the results are the same")

    _written: Written = PrivateAttr(default_factory=lambda: Written(Document("", {})))
    _resolved: ResolvedScenario | None = PrivateAttr(None)

    @property
    def written(self) -> Written:
        """The keys that were written down, and where."""
        return self._written

    @property
    def base_dir(self) -> Path:
        """Start of relative paths: the folder of the scenario file, or the current folder."""
        return self._written.base_dir

    def written_in(self, written: Written, file_name: str | None) -> Self:
        """Return the same scenario, with the record of what was written; its name defaults to that of the file."""
        given_name = written.has(("name",)) or file_name is None
        name = self.name if given_name else _fitting(file_name or "") or self.name
        scenario = self.model_copy(update={"name": name})
        scenario._written = written
        return scenario

    def resolve(self) -> ResolvedScenario:
        """Return the scenario with every value decided. Later calls return the same object.

        Raises
        ------
        InputError
            As `simqueue.scenario.resolve.resolve`.
        """
        if self._resolved is None:
            self._resolved = resolve(self)
        return self._resolved

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, which is resolved on its own; see pydantic."""
        copied = super().model_copy(update=update, deep=deep)
        copied._resolved = None
        return copied

    def policy(self, name: str) -> PolicySettings:
        """Return one entry of `policies`."""
        found: PolicySettings = self.policies[name]
        return found

    def value_for(self, policy_name: str, key: str) -> Any:
        """Return the value of a key that policies can have themselves: the policy's, otherwise the scenario's."""
        policy = self.policy(policy_name)
        own = getattr(policy, key)
        null_counts = key in policy.model_fields_set and key in _NULL_COUNTS
        if own is not None or null_counts:
            return own
        of_all = getattr(self, key)
        # a number is the price of the scenario's GPU, and of no other one
        is_other = key == "usd_per_gpu_hour" and policy.gpu not in (None, self.gpu)
        return None if is_other and isinstance(of_all, float) else of_all

    def fleet_of(self, policy_name: str) -> FleetSettings | None:
        """Return the fleet of a policy; None: one replica, without a router."""
        fleet: FleetSettings | None = self.value_for(policy_name, "fleet")
        return fleet

    def step_time_for(self, policy_name: str) -> StepTimeSettings:
        """Return the step time of a policy: by default the roofline of the model on the GPU."""
        return self.value_for(policy_name, "step_time") or RooflineSettings(kind="roofline")

    @model_validator(mode="wrap")
    @classmethod
    def _merge_and_check(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Merge the scenario's kv_cache into those of the policies, remember what was written, and check the whole."""
        if not isinstance(data, Mapping):
            return handler(data)
        given = plain(data)
        scenario = handler(_with_merged_caches(given))
        scenario._written = Written(Document("", given))
        scenario._check()
        return scenario

    def _check(self) -> None:
        """Raise what is wrong with keys that are valid one by one."""
        checks = (
            self._bad_names,
            self._bad_times,
            self._bad_workloads,
            self._bad_slos,
            self._bad_replications,
        )
        parts, unreadable = split(self)
        found = [problem for check in checks for problem in check()]
        found += [problem for part in parts for problem in missing_hardware(part)]
        if found or unreadable:
            details = [*map(details_of, dict.fromkeys(found)), *unreadable]
            raise ValidationError.from_exception_data("scenario", details)

    def _bad_names(self) -> Iterator[Problem]:
        if len(self.name) > LONGEST_NAME:
            text = (
                f"must be at most {LONGEST_NAME} characters, because folders get this name; it has {len(self.name):,}"
            )
            yield Problem(("name",), text)
        elif not _NAME.fullmatch(self.name):
            yield Problem(("name",), "must be letters, digits, '.', '_' and '-', starting with a letter or a digit")
        for name in self.policies:
            if not is_plain(name):
                yield Problem(("policies", name), f"the name of a policy {PLAIN_RULE}")

    def _bad_workloads(self) -> Iterator[Problem]:
        if self.workload is None and self.workloads is None:
            yield Problem(("workload",), "this key is missing; give workload or workloads")
        elif self.workload is not None and self.workloads is not None:
            yield Problem(("workloads",), "cannot be combined with workload; give one of the two")
        for name in self.workloads or {}:
            if not is_plain(name):
                yield Problem(("workloads", name), f"the name of a workload {PLAIN_RULE}")

    def _bad_slos(self) -> Iterator[Problem]:
        """Yield limits on all gaps between tokens that are only for some requests: gaps are not known by request."""
        workloads: list[tuple[tuple[str, ...], WorkloadSettings]]
        workloads = [(("workloads", name), found) for name, found in (self.workloads or {}).items()]
        limits = [((*path, "slo"), found.slo) for path, found in workloads]
        if self.workload is not None:  # its own limits are for all requests
            workloads.append((("workload",), self.workload))
        for path, found in workloads:
            limits += [((*path, "classes", name, "slo"), kind.slo) for name, kind in (found.classes or {}).items()]
        text = "ITL is over all requests together; give this limit in the scenario's slo, or itl_ms here"
        for where, slo in limits:
            given = of_run({} if slo is None else slo.given)
            yield from (Problem((*where, name), text) for name in given if name.endswith("_itl_ms"))

    def _bad_times(self) -> Iterator[Problem]:
        yield from time_problems(self.horizon_s, self.warmup_s)
        if self.clock_resolution_s is not None:
            ticks = 1 / self.clock_resolution_s
            if abs(ticks - round(ticks)) > 1e-9 * ticks:
                text = "must be one second divided by a whole number, such as 1e-6"
                yield Problem(("clock_resolution_s",), text)

    def _bad_replications(self) -> Iterator[Problem]:
        yield from replication_problems(self.replications, self.precision)


def _with_merged_caches(given: dict[str, Any]) -> dict[str, Any]:
    top, policies = given.get("kv_cache"), given.get("policies")
    if not isinstance(policies, dict) or not isinstance(top, dict) or not _is_cache(top):
        return given  # its mistakes are reported once, at the top level
    merged = {
        name: {**entry, "kv_cache": {**top, **entry["kv_cache"]}}
        if isinstance(entry, dict) and isinstance(entry.get("kv_cache"), dict)
        else entry
        for name, entry in policies.items()
    }
    return {**given, "policies": merged}


def _is_cache(value: dict[str, Any]) -> bool:
    try:
        KVCacheSettings.model_validate(value)
    except ValidationError:
        return False
    return True


def _fitting(file_name: str) -> str:
    """Return a name for results from the name of a file, empty if it has no letter or digit."""
    composed = unicodedata.normalize("NFC", file_name)  # macOS stores an accent apart from its letter
    return _UNFIT.sub("-", composed).lstrip("-._")
