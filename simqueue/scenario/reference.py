"""The reference of all scenario keys, written from the JSON Schema: one table a mapping."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from simqueue.scenario.policies import PolicySettings
from simqueue.scenario.schema import json_schema

Schema = dict[str, Any]

_HEAD = """\
<!-- Generated from the scenario models. Regenerate with: simqueue schema --reference > docs/reference/scenario.md -->

# Scenario keys

A scenario is a YAML file. Every key is listed here with its type, unit, default, bounds and meaning. An unknown or
repeated key, a wrong type and a value out of range are errors; they are reported before anything runs, each in one
line with file, line, key, value and what is allowed. Numbers are finite. Whole numbers are written without a point.

`--set a.b.c=VALUE` on the command line sets any key; whole numbers in the path count the items of a list from 0.
Precedence: `--set`, then a policy's own key, then the scenario's key of the same name, then the default. A policy's
`kv_cache` is merged key by key with the scenario's; its `step_time` and `gpu` replace the scenario's. A flag that sets
a scenario's key also sets it in the policies that have their own. `simqueue validate FILE` shows what holds for each
policy, and where it comes from.

Relative paths start at the scenario's folder.
"""
_TYPES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true` or `false`"}
_BOUNDS = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
_COMMON = tuple(key for key in PolicySettings.model_fields if key != "scheduler")


def reference_page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *_Page(json_schema()).sections()])


class _Page:
    """Walks the schema from the top; every mapping becomes a section the first time it is met."""

    def __init__(self, schema: Schema) -> None:
        self._definitions: dict[str, Schema] = schema["$defs"]
        self._waiting: list[tuple[str, str, Schema]] = [("", "Top level", schema)]
        self._titles: dict[str, str] = {}

    def sections(self) -> Iterator[str]:
        """Yield the sections, those of deeper mappings after the one that leads to them."""
        done = 0
        while done < len(self._waiting):
            path, title, schema = self._waiting[done]
            done += 1
            yield self._section(path, title, schema)

    def _section(self, path: str, title: str, schema: Schema) -> str:
        rows = [
            self._row(f"{path}.{key}" if path else key, key, value, required=key in schema.get("required", ()))
            for key, value in schema["properties"].items()
        ]
        about = [] if not path else [_paragraph(schema.get("description", "")), ""]
        table = ["| key | type | unit | default | bounds | meaning |", "|---|---|---|---|---|---|", *rows]
        return "\n".join([f"## {title}", "", *about, *table, ""])

    def _row(self, path: str, key: str, value: Schema, *, required: bool) -> str:
        shape, bounds = self._shape(path, value)
        default = "required" if required or "const" in value else _default(value)
        cells = [f"`{key}`", shape, value.get("unit", ""), default, bounds, _paragraph(value.get("description", ""))]
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    def _shape(self, path: str, value: Schema) -> tuple[str, str]:
        """Return the type of a value in words, with links to sections, and its bounds."""
        shapes, bounds = [], []
        for branch in _branches(value):
            shapes.append(self._branch(path, branch))
            bounds += [f"{sign} {branch[name]:g}" for name, sign in _BOUNDS.items() if name in branch]
            bounds += [f"at least {branch[name]}" for name in ("minItems", "minProperties") if name in branch]
        return " or ".join(dict.fromkeys(shapes)), ", ".join(dict.fromkeys(bounds))

    def _branch(self, path: str, branch: Schema) -> str:
        if "$ref" in branch:
            return self._link(path, branch["$ref"].rpartition("/")[2])
        if "const" in branch:
            return f"`{branch['const']}`"
        if "enum" in branch:
            return ", ".join(f"`{name}`" for name in branch["enum"])
        kind = branch.get("type")
        if kind == "array":
            return f"list of {self._shape(f'{path}.0', branch['items'])[0]}"
        if kind == "object":
            return f"mapping of names to {self._shape(f'{path}.NAME', branch['additionalProperties'])[0]}"
        return "null" if kind == "null" else _TYPES[str(kind)]

    def _link(self, path: str, name: str) -> str:
        """Return a link to the section of a definition, which is made when it is met first."""
        schema = self._definitions[name]
        if name not in self._titles:
            tag = next(
                (f"{key}: {value['const']}" for key, value in schema["properties"].items() if "const" in value), ""
            )
            self._titles[name] = f"`{path}`" + (f" with `{tag}`" if tag else "")
            self._waiting += self._parts(path, name, schema)
        title = self._titles[name]
        label = title.partition(" with ")[2] or "mapping"
        return f"[{label}](#{_anchor(title)})"

    def _parts(self, path: str, name: str, schema: Schema) -> Iterator[tuple[str, str, Schema]]:
        """Yield a section; the keys that all policies share get one of their own, once."""
        if "scheduler" not in schema["properties"]:
            yield path, self._titles[name], schema
            return
        shared = {key: schema["properties"][key] for key in _COMMON}
        own = {key: value for key, value in schema["properties"].items() if key not in shared}
        if not any(title == "Every policy" for _, title, _ in self._waiting):
            about = "Keys that every policy may carry, whatever its scheduler."
            yield path, "Every policy", {"properties": shared, "description": about}
        yield path, self._titles[name], {**schema, "properties": {"scheduler": own.pop("scheduler"), **own}}


def _branches(value: Schema) -> Iterator[Schema]:
    """Yield the alternatives of a value, nested choices flattened."""
    choices = value.get("anyOf") or value.get("oneOf")
    if choices is None:
        yield value
        return
    for choice in choices:
        yield from _branches(choice)


def _default(value: Schema) -> str:
    return f"`{json.dumps(value['default'])}`" if "default" in value else "see there"


def _paragraph(text: str) -> str:
    """Return the first paragraph of a description on one line."""
    return " ".join(text.partition("\n\n")[0].split())


def _anchor(title: str) -> str:
    """Return the anchor that Markdown renderers give a heading."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " _-")
    return kept.replace(" ", "-")
