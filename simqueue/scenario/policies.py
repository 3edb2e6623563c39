"""One policy of a scenario: a scheduler, that scheduler's own keys, and what the policy has for itself."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, create_model
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from simqueue.hardware import GpuChoice
from simqueue.kvcache.settings import KVCacheSettings
from simqueue.scenario.problems import located
from simqueue.schedulers import SCHEDULERS
from simqueue.settings import Settings, nearest
from simqueue.steptime import StepTimeSettings


class PolicySettings(Settings):
    """Keys that every policy has; those of its scheduler stand beside them."""

    scheduler: str = Field(description="who runs in the next step; `simqueue list policies` names them")
    gpu: GpuChoice | None = Field(None, description="this policy's own GPU instead of the scenario's")
    tensor_parallel: int | None = Field(
        None, ge=1, description="this policy's own number of GPUs", json_schema_extra={"unit": "GPUs"}
    )
    step_time: StepTimeSettings | None = Field(
        None, description="this policy's own step time; it takes the place of the scenario's as a whole"
    )
    kv_cache: KVCacheSettings | None = Field(
        None, description="this policy's own keys of the KV cache; keys left out are the scenario's"
    )
    max_model_len: int | None = Field(
        None,
        ge=1,
        description="this policy's own limit of prompt + output tokens of a request",
        json_schema_extra={"unit": "tokens"},
    )

    def scheduler_settings(self) -> Settings:
        """Return the scheduler's own keys as its `Settings`."""
        own = SCHEDULERS[self.scheduler].Settings
        given = {key: getattr(self, key) for key in own.model_fields if key in self.model_fields_set}
        return own.model_validate(given)


def policy_model(scheduler: str) -> type[PolicySettings]:
    """Return the model of a policy with this scheduler. Precondition: the scheduler is registered."""
    return _combined(scheduler, SCHEDULERS[scheduler].Settings)


def read_policy(value: Any) -> PolicySettings:
    """Check one entry of `policies`, with the keys of the scheduler that it names."""
    if isinstance(value, PolicySettings):
        return value
    if not isinstance(value, dict):
        raise PydanticCustomError("dict_type", "must be a mapping")
    if "scheduler" not in value:
        raise _no_scheduler(value)
    name = value["scheduler"]
    if not isinstance(name, str):
        raise located([(("scheduler",), "must be text", name)])
    if name not in SCHEDULERS:
        guess = nearest(name, list(SCHEDULERS))
        hint = f"did you mean '{guess}'? " if guess else ""
        known = ", ".join(sorted(SCHEDULERS))
        raise located([(("scheduler",), f"unknown scheduler; {hint}known: {known}", name)])
    return policy_model(name).model_validate(value)


class _AnyScheduler:
    """Tells pydantic that the JSON Schema of a policy is a choice between those of all schedulers."""

    @classmethod
    def __get_pydantic_json_schema__(cls, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        choices = []
        for name in sorted(SCHEDULERS):
            schema = handler(policy_model(name).__pydantic_core_schema__)
            target = handler.resolve_ref_schema(schema)
            target["properties"]["scheduler"] |= {"const": name}
            choices.append(schema)
        return {"oneOf": choices}


PolicyEntry = Annotated[Any, BeforeValidator(read_policy), _AnyScheduler]
"""The type of one entry of `policies`; what comes out is a `PolicySettings`."""


@cache
def _combined(scheduler: str, own: type[Settings]) -> type[PolicySettings]:
    title = "".join(part.capitalize() for part in scheduler.replace("-", "_").split("_")) + "Policy"
    model = create_model(title, __base__=(PolicySettings, own), __doc__=own.__doc__)
    return cast("type[PolicySettings]", model)


def _no_scheduler(value: dict[str, Any]) -> Exception:
    misspelt = [key for key in value if key == "engine" or nearest(key, ["scheduler"])]
    if misspelt:
        allowed = "scheduler, and the keys of the scheduler it names"
        return PydanticCustomError("unknown_key", "unknown key", {"key": misspelt[0], "allowed": allowed})
    known = ", ".join(sorted(SCHEDULERS))
    return located([(("scheduler",), f"this key is missing; known schedulers: {known}", None)])
