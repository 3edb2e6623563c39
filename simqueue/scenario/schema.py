"""The JSON Schema of a scenario file."""

from __future__ import annotations

from typing import Any

from simqueue.scenario.model import Scenario


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file, with the schedulers that are registered now.

    Editors that know YAML complete and check keys with it; `unit` stands beside values that have one.
    """
    schema = Scenario.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "simqueue scenario"}
