"""The architectures of Hugging Face config.json files, with the defaults of their configuration classes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import Field

from simqueue.datafiles.library import validated
from simqueue.datafiles.yamlfile import read_yaml
from simqueue.errors import InputError
from simqueue.names import unknown
from simqueue.settings import Settings


class ExpertKeys(Settings):
    """Names of the keys of a config.json that describe experts."""

    count: str = Field(description="routed experts")
    width: str = Field(description="width of one routed expert")
    shared_width: str | None = Field(None, description="width of all shared experts together")
    shared_count: str | None = Field(None, description="shared experts, of the width of routed ones")
    dense_first: str | None = Field(None, description="first layers without experts")


class Architecture(Settings):
    """How the files of one architecture are read; ``architectures.yaml`` explains each key."""

    source: str
    model_types: list[str]
    names: dict[str, str] = Field(default_factory=dict)
    defaults: dict[str, Any]
    ffn_4: bool = False
    shape: dict[str, Any] = Field(default_factory=dict)
    switches: dict[str, list[str]] = Field(default_factory=dict)
    experts: ExpertKeys | None = None
    latent: bool = False
    windows: Literal["all", "pattern"] = "all"
    spare_positions: int | None = Field(None, description="rows of learned positions beyond the longest sequence")
    only: dict[str, Any] = Field(default_factory=dict)


@cache
def architectures() -> Mapping[str, Architecture]:
    """Return all architectures by name."""
    file = files("simqueue.hardware") / "architectures.yaml"
    return {
        name: validated(Architecture, facts, f"architecture '{name}'")
        for name, facts in read_yaml(file)["architectures"].items()
    }


def architecture_of(config: Mapping[str, Any], file: str) -> tuple[str, Architecture]:
    """Return the architecture that a config.json names.

    Raises
    ------
    InputError
        If it is unknown, or `model_type` is that of another architecture.
    """
    given = config.get("architectures")
    name = given[0] if isinstance(given, list) and given else given
    known = architectures()
    if not isinstance(name, str) or name not in known:
        raise InputError(f"{file}: {unknown('architecture', name, sorted(known))}")
    kind = config.get("model_type")
    others = {other for entry in known.values() for other in entry.model_types}
    if kind in others - set(known[name].model_types):
        raise InputError(f"{file}: model_type '{kind}' is of another architecture than '{name}'")
    return name, known[name]
