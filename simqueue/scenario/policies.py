"""The keys of a policy: a scheduler or an engine, its own keys, and keys that override those of the scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, create_model
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from simqueue.engines import ENGINES
from simqueue.frontend import FrontEndSettings
from simqueue.hardware import GpuChoice
from simqueue.hardware.price import UsdPerGpuHour
from simqueue.kvcache.settings import KVCacheSettings
from simqueue.names import nearest, unknown
from simqueue.scenario.fleet import FleetSettings
from simqueue.schedulers import SCHEDULERS
from simqueue.settings import Settings, invalid, unknown_keys
from simqueue.steptime import StepTimeFactor, StepTimeSettings


class PolicySettings(Settings):
    """Keys that every policy can have, besides those of its scheduler or engine."""

    gpu: GpuChoice | None = Field(None, description="GPU of this policy; overrides the scenario's")
    tensor_parallel: int | None = Field(
        None,
        ge=1,
        description="GPUs of this policy; overrides the scenario's",
        json_schema_extra={"unit": "GPUs"},
    )
    usd_per_gpu_hour: UsdPerGpuHour | None = Field(
        None,
        description="price of one GPU of this policy; overrides the scenario's, which as a number is only for its GPU",
        json_schema_extra={"unit": "USD/hour"},
    )
    step_time: StepTimeSettings | None = Field(
        None, description="step time of this policy; replaces the scenario's as a whole"
    )
    step_time_factor: StepTimeFactor | None = Field(
        None, description="factor of all step times of this policy; overrides the scenario's"
    )
    front_end: FrontEndSettings | None = Field(
        None, description="front end of this policy; replaces the scenario's as a whole; null: none"
    )
    kv_cache: KVCacheSettings | None = Field(
        None, description="KV cache of this policy; keys that are not given are the scenario's"
    )
    max_model_len: int | None = Field(
        None,
        ge=1,
        description="maximum number of tokens (prompt + output) per request; overrides the scenario's",
        json_schema_extra={"unit": "tokens"},
    )
    fleet: FleetSettings | None = Field(
        None, description="replicas of this policy; replaces the scenario's as a whole; null: one, without a router"
    )

    @property
    def kind(self) -> str:
        """Name of its scheduler or engine."""
        raise NotImplementedError

    def own_settings(self) -> Settings:
        """Return the keys of its scheduler or engine as that one's `Settings`."""
        raise NotImplementedError

    def _own(self, settings: type[Settings]) -> Settings:
        given = {key: getattr(self, key) for key in settings.model_fields if key in self.model_fields_set}
        return settings.model_validate(given)


class SchedulerPolicy(PolicySettings):
    """A policy that names a scheduler."""

    scheduler: str = Field(description="name of the scheduler; see `simqueue list policies`")

    @property
    def kind(self) -> str:
        """Name of its scheduler."""
        return self.scheduler

    def own_settings(self) -> Settings:
        """Return the keys of the scheduler."""
        return self._own(SCHEDULERS[self.scheduler].Settings)


class EnginePolicy(PolicySettings):
    """A policy that names an engine at a version."""

    engine: str = Field(description="name of the engine; see `simqueue list engines`")

    @property
    def kind(self) -> str:
        """Name of its engine."""
        return self.engine

    def own_settings(self) -> Settings:
        """Return the flags of the engine."""
        return self._own(ENGINES[self.engine].Settings)


@dataclass(frozen=True, slots=True)
class _Choice:
    """A key that says what kind of policy this is."""

    key: str
    base: type[PolicySettings]
    known: Callable[[], Mapping[str, type[Settings]]]


CHOICES = (
    _Choice("scheduler", SchedulerPolicy, lambda: {name: policy.Settings for name, policy in SCHEDULERS.items()}),
    _Choice("engine", EnginePolicy, lambda: {name: engine.Settings for name, engine in ENGINES.items()}),
)
"""Every policy has exactly one of these keys."""


def read_policy(value: Any) -> PolicySettings:
    """Validate one entry of `policies`, with the keys of the scheduler or engine that it names."""
    if isinstance(value, PolicySettings):
        return value
    if not isinstance(value, dict):
        raise invalid("must be a mapping")
    return policy_class(value).model_validate(value)


def policy_class(value: Mapping[str, Any]) -> type[PolicySettings]:
    """Return the class of the policy with these keys.

    Raises
    ------
    ValidationError
        If they name no scheduler or engine, or one that does not exist.
    """
    chosen = [choice for choice in CHOICES if choice.key in value]
    if not chosen:
        raise _no_choice(value)
    if len(chosen) > 1:
        raise invalid("a policy has either 'scheduler' or 'engine', not both", "engine")
    choice = chosen[0]
    name, known = value[choice.key], choice.known()
    if not isinstance(name, str):
        raise invalid("must be text", choice.key)
    if name not in known:
        raise invalid(unknown(choice.key, name, sorted(known)), choice.key)
    return _combined(name, choice.base, known[name])


class _AnyPolicy:
    """Gives pydantic the JSON Schema of a policy: a choice between those of all schedulers and engines."""

    @classmethod
    def __get_pydantic_json_schema__(cls, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        choices = []
        for choice in CHOICES:
            for name, own in sorted(choice.known().items()):
                schema = handler(_combined(name, choice.base, own).__pydantic_core_schema__)
                target = handler.resolve_ref_schema(schema)
                target["properties"][choice.key] |= {"const": name}
                choices.append(schema)
        return {"oneOf": choices}


PolicyEntry = Annotated[Any, BeforeValidator(read_policy), _AnyPolicy]
"""The type of one entry of `policies`; what comes out is a `PolicySettings`."""


@cache
def _combined(name: str, base: type[PolicySettings], own: type[Settings]) -> type[PolicySettings]:
    title = "".join(part.capitalize() for part in name.replace("-", "_").split("_")) + "Policy"
    model = create_model(title, __base__=(base, own), __doc__=own.__doc__)
    return cast("type[PolicySettings]", model)


def _no_choice(value: Mapping[str, Any]) -> Exception:
    keys = [choice.key for choice in CHOICES]
    misspelt = [key for key in value if nearest(str(key), keys)]
    if misspelt:
        return unknown_keys([str(misspelt[0])], [*keys, "the keys of what they name"])
    known = ", ".join(sorted(SCHEDULERS))
    return invalid(f"this key is missing (or 'engine'); known schedulers: {known}", "scheduler")
