"""The reference of all scenario keys, generated from the JSON Schema: one table per mapping."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from simqueue.scenario.policies import CHOICES, PolicySettings
from simqueue.scenario.schema import plain_schema

Schema = dict[str, Any]

_HEAD = """\
<!-- Generated from the scenario models. Regenerate with: simqueue schema --reference > docs/reference/scenario.md -->

# Scenario keys

A scenario is a YAML file. This page lists every key with its type, unit, default, bounds and meaning. Unknown and
repeated keys, wrong types and values out of range are errors. All errors are reported before anything runs, in one
line each, with file, line, key, value and what is allowed. Numbers are finite. Whole numbers are written without a
decimal point.

`--set a.b.c=VALUE` on the command line sets any key; whole numbers in the path are indices of lists, from 0.
Precedence: `--set`, then the key of a group of replicas, then the policy's key, then the scenario's key of the same
name, then the default. The `kv_cache` of a policy or a group is merged key by key with the one above it. A policy's
`step_time`, `gpu` and `fleet` replace the scenario's. A flag that sets a key of the scenario also sets it in the
policies and groups that have this key; a flag that sets a key of a policy, in the groups of its own fleet.
`simqueue validate FILE` shows the values of each policy and where each value comes from.

Relative paths start at the folder of the scenario file.
"""
_TYPES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true` or `false`"}
_BOUNDS = {
    "exclusiveMinimum": ">",
    "minimum": "≥",
    "exclusiveMaximum": "<",
    "maximum": "≤",
    "gt": ">",
    "ge": "≥",
    "lt": "<",
    "le": "≤",
}
_EVERY_POLICY = "Every policy"
_COMMON = tuple(PolicySettings.model_fields)
_NAMED = tuple(choice.key for choice in CHOICES)


@dataclass(frozen=True, slots=True)
class _Section:
    path: str
    title: str
    schema: Schema


def reference_page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *_Page(plain_schema()).sections()])


class _Page:
    """Walks through the schema from the top. Every mapping becomes a section where it first occurs."""

    def __init__(self, schema: Schema) -> None:
        self._definitions: dict[str, Schema] = schema["$defs"]
        self._tags = {*_NAMED, *_tag_keys(schema)}
        self._titles: dict[str, str] = {}
        self._paths: dict[str, list[str]] = {}
        self._met: list[_Section] = []
        self._top = _Section("", "Top level", schema)

    def sections(self) -> Iterator[str]:
        """Yield the sections, each followed by those it links to first."""
        walked = self._walk(self._top)
        for section, rows in walked:
            about = [_paragraph(section.schema.get("description", ""))] if section.path else []
            also = [path for path in self._paths.get(section.title, ()) if path != section.path]
            if also:
                about.append("The same keys at " + ", ".join(f"`{path}`" for path in also) + ".")
            table = ["| key | type | unit | default | bounds | meaning |", "|---|---|---|---|---|---|", *rows]
            yield "\n".join([f"## {section.title}", "", *([" ".join(about), ""] if about else []), *table, ""])

    def _walk(self, section: _Section) -> list[tuple[_Section, list[str]]]:
        required = section.schema.get("required", ())
        prefix = f"{section.path}." if section.path else ""
        self._met = []
        rows = [
            self._row(prefix + key, key, value, required=key in required)
            for key, value in section.schema["properties"].items()
        ]
        rows += [
            self._row(prefix + value["title"], value["title"], {**value, "default": None}, required=False)
            for value in section.schema.get("patternProperties", {}).values()
        ]
        walked = [(section, rows)]
        for inner in self._met:
            walked += self._walk(inner)
        return walked

    def _row(self, path: str, key: str, value: Schema, *, required: bool) -> str:
        shape, bounds = self._shape(path, value)
        default = "required" if required or _is_tag(key, value, self._tags) else _default(value)
        cells = [f"`{key}`", shape, value.get("unit", ""), default, bounds, _paragraph(value.get("description", ""))]
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    def _shape(self, path: str, value: Schema) -> tuple[str, str]:
        """Return the type of a value in words, with links to sections, and its bounds."""
        shapes, bounds = [], []
        for branch in _branches(value):
            shapes.append(self._branch(path, branch))
            bounds += _bounds(branch)
        bounds += _bounds(value)
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
            return self._list(path, branch)
        if kind == "object":
            return f"mapping of names to {self._shape(f'{path}.NAME', branch['additionalProperties'])[0]}"
        return "null" if kind == "null" else _TYPES[str(kind)]

    def _list(self, path: str, branch: Schema) -> str:
        if "prefixItems" in branch:
            parts = [self._shape(f"{path}.{place}", part)[0] for place, part in enumerate(branch["prefixItems"])]
            return f"list [{', '.join(parts)}]"
        return f"list of {self._shape(f'{path}.N', branch['items'])[0]}"

    def _link(self, path: str, name: str) -> str:
        """Return a link to the section of a definition; the section is made at its first link."""
        schema = self._definitions[name]
        if name not in self._titles:
            own = schema["properties"].items()
            tags = [f"{key}: {value['const']}" for key, value in own if _is_tag(key, value, self._tags)]
            self._titles[name] = f"`{path}`" + (f" with `{tags[0]}`" if tags else "")
            self._met += self._parts(path, name, schema)
        title = self._titles[name]
        paths = self._paths.setdefault(title, [])
        if path not in paths:
            paths.append(path)
        return f"[{title.partition(' with ')[2] or 'mapping'}](#{_anchor(title)})"

    def _parts(self, path: str, name: str, schema: Schema) -> Iterator[_Section]:
        """Yield a section; the keys that all policies share have one section of their own."""
        named = next((key for key in _NAMED if key in schema["properties"]), None)
        if named is None:
            yield _Section(path, self._titles[name], schema)
            return
        shared = {key: schema["properties"][key] for key in _COMMON}
        own = {key: value for key, value in schema["properties"].items() if key not in shared}
        if not any(section.title == _EVERY_POLICY for section in self._met):
            about = "Keys that every policy can have, whatever its scheduler or engine."
            yield _Section(path, _EVERY_POLICY, {"properties": shared, "description": about})
        yield _Section(path, self._titles[name], {**schema, "properties": {named: own.pop(named), **own}})


def _tag_keys(schema: Any) -> Iterator[str]:
    """Yield the keys that select one of several kinds, anywhere in the schema."""
    if isinstance(schema, dict):
        if "propertyName" in schema.get("discriminator", {}):
            yield schema["discriminator"]["propertyName"]
        for inner in schema.values():
            yield from _tag_keys(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _tag_keys(inner)


def _is_tag(key: str, value: Schema, tags: Collection[str]) -> bool:
    """Whether a key selects this mapping of several kinds."""
    return key in tags and "const" in value


def _bounds(branch: Schema) -> list[str]:
    numbers = [f"{sign} {branch[name]:g}" for name, sign in _BOUNDS.items() if name in branch]
    return numbers + [f"at least {branch[name]}" for name in ("minItems", "minProperties") if name in branch]


def _branches(value: Schema) -> Iterator[Schema]:
    """Yield the alternatives of a value, with nested choices flattened."""
    choices = value.get("anyOf") or value.get("oneOf")
    if choices is None:
        yield value
        return
    for choice in choices:
        yield from _branches(choice)


def _default(value: Schema) -> str:
    return f"`{json.dumps(value['default'])}`" if "default" in value else "see section"


def _paragraph(text: str) -> str:
    """Return the first paragraph of a description on one line."""
    return " ".join(text.partition("\n\n")[0].replace("``", "`").split())


def _anchor(title: str) -> str:
    """Return the anchor that Markdown renderers make for a heading."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " _-")
    return kept.replace(" ", "-")
