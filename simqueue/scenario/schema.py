"""The JSON Schema of a scenario file."""

from __future__ import annotations

from typing import Any

from simqueue.scenario.model import Scenario


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file, with the schedulers that are registered at present.

    Editors can complete and check YAML with it. Values with a unit have a key `unit`.
    """
    schema = Scenario.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "simqueue scenario"}
