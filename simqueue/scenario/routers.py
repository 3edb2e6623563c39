"""The key `router` of a fleet: the kind of a router, alone or with its own keys."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, create_model
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from simqueue.names import nearest, unknown
from simqueue.routing import ROUTERS, Router
from simqueue.settings import Settings, invalid, unknown_keys

DEFAULT_KIND = "round_robin"
"""The router of a fleet that names none."""


class RouterSettings(Settings):
    """A router with its own keys."""

    kind: str = Field(description="name of the router; see `simqueue list routers`")

    @property
    def router_class(self) -> type[Router]:
        """Its class."""
        return ROUTERS[self.kind]

    def own_settings(self) -> Settings:
        """Return its own keys as the `Settings` of its class."""
        own = self.router_class.Settings
        given = {key: field for key, field in own.model_fields.items() if key in self.model_fields_set}
        return own.model_validate({field.alias or key: getattr(self, key) for key, field in given.items()})


def read_router(value: Any) -> RouterSettings:
    """Validate a router: a kind, or a mapping with a kind and the keys of the router that it names."""
    if isinstance(value, RouterSettings):
        return value
    keys = {"kind": value} if isinstance(value, str) else value
    if not isinstance(keys, dict):
        raise invalid("must be a name or a mapping")
    path = ("kind",) if keys is value else ()
    if "kind" not in keys:
        raise _no_kind(keys)
    kind = keys["kind"]
    if not isinstance(kind, str):
        raise invalid("must be text", "kind")
    if kind not in ROUTERS:
        raise invalid(unknown("router", kind, sorted(ROUTERS)), *path)
    return _combined(kind, ROUTERS[kind]).model_validate(keys)


class _AnyRouter:
    """Gives pydantic the JSON Schema of a router: the name of one, or a choice between the mappings of all."""

    @classmethod
    def __get_pydantic_json_schema__(cls, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        choices = []
        for kind, router in sorted(ROUTERS.items()):
            schema = handler(_referred(_combined(kind, router)))
            handler.resolve_ref_schema(schema)["properties"]["kind"] |= {"const": kind}
            choices.append(schema)
        return {"anyOf": [{"enum": sorted(ROUTERS)}, {"oneOf": choices}]}


def _referred(model: type[RouterSettings]) -> CoreSchema:
    """Return the schema of a model as a definition; pydantic puts in place what has no definitions inside."""
    schema = model.__pydantic_core_schema__
    if schema["type"] == "definitions" or "ref" not in schema:
        return schema
    return core_schema.definitions_schema(core_schema.definition_reference_schema(schema["ref"]), [schema])


RouterEntry = Annotated[Any, BeforeValidator(read_router), _AnyRouter]
"""The type of the key; what comes out is a `RouterSettings`."""


def _combined(kind: str, router: type[Router]) -> type[RouterSettings]:
    return _model(kind, router.Settings, router.summary)


@cache
def _model(kind: str, own: type[Settings], summary: str) -> type[RouterSettings]:
    title = "".join(part.capitalize() for part in kind.replace("-", "_").split("_")) + "Router"
    model = create_model(title, __base__=(own, RouterSettings), __doc__=f"Router: {summary}.")
    return cast("type[RouterSettings]", model)


def _no_kind(keys: dict[Any, Any]) -> Exception:
    misspelt = [key for key in keys if nearest(str(key), ["kind"])]
    if misspelt:
        return unknown_keys([str(misspelt[0])], ["kind", "the keys of the router"])
    return invalid(f"this key is missing; known routers: {', '.join(sorted(ROUTERS))}", "kind")
