"""The JSON Schema of a scenario file, as editors use it: with the names that the package knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from simqueue.engines import ENGINES
from simqueue.hardware import gpu_names, model_names
from simqueue.scenario.model import Scenario
from simqueue.scenario.policies import CHOICES
from simqueue.steptime import preset_names
from simqueue.workload.traces.catalog import trace_names

Schema = dict[str, Any]


def json_schema() -> Schema:
    """Return the JSON Schema of a scenario file, with the schedulers that are registered at present.

    Editors can complete and check YAML with it. Values with a unit have a key `unit`. Where a name of the package or a
    file is allowed, the names are listed beside any other text.
    """
    schema = plain_schema()
    names = {"model": model_names(), "gpu": gpu_names(), "preset": preset_names()}
    for properties in (one.get("properties", {}) for one in (schema, *schema["$defs"].values())):
        for key in names.keys() & properties.keys():
            _offer(properties[key], names[key])
        engine = properties.get("engine", {}).get("const")
        if engine is not None:
            properties["version"]["enum"] = [str(row["version"]) for row in ENGINES[engine].rows()]
    _offer(schema["$defs"]["TraceSettings"]["properties"]["name"], trace_names())
    _offer_keys_of_policies(schema["$defs"])
    return schema


def plain_schema() -> Schema:
    """Return the JSON Schema of a scenario file without the names of the package."""
    schema = Scenario.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "simqueue scenario"}


def _offer(place: Schema, names: Iterable[str]) -> None:
    """Add names to the branch of a value that is text; other text stays valid."""
    for branch in _branches(place):
        if branch.get("type") == "string":
            del branch["type"]
            branch["anyOf"] = [{"enum": list(names)}, {"type": "string"}]


def _offer_keys_of_policies(definitions: Schema) -> None:
    """Add the keys of all policies to those of a group; which of them it can have depends on its policy."""
    found: dict[str, list[Schema]] = {}
    for properties in (one.get("properties", {}) for one in definitions.values()):
        if any("const" in properties.get(choice.key, {}) for choice in CHOICES):
            for key, value in properties.items():
                found.setdefault(key, []).append({name: part for name, part in value.items() if name != "default"})
    for key, values in found.items():
        distinct = [value for place, value in enumerate(values) if value not in values[:place]]
        if key != "fleet":
            alone = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
            definitions["GroupSettings"]["properties"].setdefault(key, alone)


def _branches(place: Schema) -> list[Schema]:
    inner: list[Mapping[str, Any]] = [*place.get("anyOf", ()), *place.get("oneOf", ())]
    return [place, *(found for branch in inner if isinstance(branch, dict) for found in _branches(branch))]
