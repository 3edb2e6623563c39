"""What an engine needs: a module with flags and rules, and a file of facts by version."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import Field

from simqueue.engines.base import (
    GIVEN,
    CacheRules,
    Deployment,
    Engine,
    ResolvedEngine,
    reject_flags,
    with_defaults,
)
from simqueue.engines.versions import VersionFacts, facts_at, read_versions
from simqueue.errors import InputError
from simqueue.kvcache import KVCacheSettings, PagedKVCache
from simqueue.schedulers.chunked import Chunked
from simqueue.schedulers.keys import ChunkedSettings
from simqueue.schedulers.limits import RequestLimits
from simqueue.settings import Settings

FACTS = """\
versions:
  - {version: 1.0.0, source: "toy 1.0.0: scheduler.py", seqs: 8, share: 0.8}
  - {version: 1.2.0, source: "toy 1.2.0: scheduler.py", seqs: 16}
  - {version: 2.0.0, source: "toy 2.0.0: scheduler.py", eager: false}
"""


class ToyFlags(Settings):
    """Flags of an engine that exists in this test only."""

    version: str
    most_running: int | None = Field(None, ge=1)
    memory_fraction: float | None = None
    eager: bool | None = None


class ToyFacts(VersionFacts):
    """Facts of one of its versions."""

    seqs: int
    share: float
    eager: bool | None = None


class Toy(Engine):
    """The engine."""

    name: ClassVar[str] = "toy"
    Settings: ClassVar[type[Settings]] = ToyFlags
    cache_flags: ClassVar[Mapping[str, str]] = {"memory_share": "memory_fraction"}

    def __init__(self, file: Path) -> None:
        self.versions = read_versions(file, ToyFacts)

    def resolve(self, flags: ToyFlags, deployment: Deployment) -> ResolvedEngine:
        """Return the value of every flag."""
        facts = facts_at("toy", self.versions, flags.version)
        if facts.eager is None:
            reject_flags(flags, ["eager"], f"toy {facts.version} has no such flag")
        defaults = {"most_running": facts.seqs, "memory_fraction": facts.share, "eager": facts.eager}
        values, origins = with_defaults(flags, defaults, facts.source, deployment.kv_cache, self.cache_flags)
        settings = ChunkedSettings(max_num_seqs=values["most_running"])
        return ResolvedEngine(
            title=f"toy {facts.version}",
            values=values,
            origins=origins,
            cache_origins={"memory_share": origins["memory_fraction"]},
            cache=CacheRules(16, values["memory_fraction"], prefix_caching=False),
            cuts_output=False,
            make=lambda kv, limits: Chunked(settings, kv, limits),
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per version."""
        return [{"engine": "toy", "version": version} for version in self.versions]

    def summary(self, values: Mapping[str, Any]) -> str:
        """Return version and flags."""
        return f"toy {values['version']}: most_running {values['most_running']}"


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """Return the engine with its facts."""
    file = tmp_path / "toy.yaml"
    file.write_text(FACTS, encoding="utf-8")
    return Toy(file)


def resolved(toy: Toy, kv_cache: dict[str, Any] | None = None, **flags: Any) -> ResolvedEngine:
    """Resolve flags without a GPU."""
    deployment = Deployment(None, None, KVCacheSettings.model_validate(kv_cache or {}), None)
    return toy.resolve(ToyFlags.model_validate(flags), deployment)


def test_facts_are_those_of_the_version_before_unless_changed(toy: Toy) -> None:
    """An entry of the file lists only what its version changes."""
    assert [(facts.seqs, facts.share, facts.eager) for facts in toy.versions.values()] == [
        (8, 0.8, None),
        (16, 0.8, None),
        (16, 0.8, False),
    ]


def test_a_value_is_the_flag_else_the_key_else_the_default(toy: Toy) -> None:
    """A flag overrides the key of kv_cache with the same meaning, which overrides the default of the version."""
    default = resolved(toy, version="1.2.0")
    assert (default.values["memory_fraction"], default.origins["memory_fraction"]) == (0.8, "toy 1.2.0: scheduler.py")
    key = resolved(toy, {"memory_share": 0.5}, version="1.2.0")
    assert (key.values["memory_fraction"], key.origins["memory_fraction"]) == (0.5, GIVEN)
    flag = resolved(toy, {"memory_share": 0.5}, version="1.2.0", memory_fraction=0.6)
    assert (flag.values["memory_fraction"], flag.cache_origins["memory_share"]) == (0.6, GIVEN)


def test_a_flag_that_does_not_exist_is_rejected_by_name(toy: Toy) -> None:
    """The error has the flag as its path, and its value."""
    with pytest.raises(InputError, match=r"^eager = true: toy 1\.0\.0 has no such flag$"):
        resolved(toy, version="1.0.0", eager=True)
    assert resolved(toy, version="2.0.0", eager=True).values["eager"] is True


def test_versions_in_between_are_not_guessed(toy: Toy) -> None:
    """The error names the nearest known versions."""
    with pytest.raises(
        InputError, match=r"version = '1\.1\.0': unknown version of toy; nearest known: 1.0.0 and 1.2.0"
    ):
        resolved(toy, version="1.1.0")


def test_a_resolved_engine_makes_policies(toy: Toy) -> None:
    """Each call returns a new policy of the values."""
    engine = resolved(toy, version="1.0.0")
    policies = [engine.make(PagedKVCache(10, 16), RequestLimits()) for _ in range(2)]
    assert policies[0] is not policies[1]
    assert policies[0].free_seats == 8


def test_facts_of_another_shape_are_errors_with_the_version(tmp_path: Path) -> None:
    """A missing or misspelt fact names file and version."""
    file = tmp_path / "toy.yaml"
    file.write_text(FACTS.replace("eager: false", "eagre: false"), encoding="utf-8")
    with pytest.raises(InputError, match=r"^toy.yaml, version 2.0.0: .*did you mean 'eager'"):
        read_versions(file, ToyFacts)
