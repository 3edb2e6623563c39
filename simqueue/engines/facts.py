"""Facts of vLLM by version, read from the data file: each version changes some of those before it."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, Literal

from pydantic import Field

from simqueue.datafiles.library import validated
from simqueue.datafiles.yamlfile import read_yaml
from simqueue.errors import InputError
from simqueue.settings import Settings


class Budget(Settings):
    """Default token budget and seats."""

    tokens: int = Field(ge=1)
    seqs: int = Field(ge=1)


class Tier(Settings):
    """Defaults for devices of a kind."""

    min_memory_gib: float = 0.0
    named: tuple[str, ...] | None = Field(None, strict=False)
    not_named: tuple[str, ...] = Field((), strict=False)
    server: Budget
    offline: Budget

    def holds_for(self, gpu_name: str, memory_gib: float) -> bool:
        """Return whether a device belongs here."""
        if memory_gib < self.min_memory_gib or any(word in gpu_name for word in self.not_named):
            return False
        return self.named is None or any(word in gpu_name for word in self.named)


class VllmFacts(Settings):
    """What holds at one version; None: the feature does not exist there."""

    version: str
    source: str
    engine: Literal["v0", "v1"]
    v1: Literal["opt_in", "default", "only"] | None = None
    block_size: int
    gpu_memory_utilization: float
    enable_prefix_caching: bool
    chunked_prefill: Literal["never", "opt_in", "on_when_long"]
    padded_prompts: bool
    v0_max_num_seqs: int
    v0_chunked_tokens: int | None
    v0_watermark: float
    unchunked_overflow: Literal["stop", "skip"] | None = None
    lone_request_uncapped: bool = False
    threshold_adaptive: bool = False
    unhashed_first: bool = False
    ties_by_id: bool = False
    scheduler_reserve_full_isl: bool | None = None
    watermark: float | None = None
    async_scheduling: bool | None = None
    over_length: Literal["refuse", "cut"] = "refuse"
    performance_mode: bool = False
    tiers: tuple[Tier, ...] = Field((), strict=False)


@cache
def vllm_versions() -> dict[str, VllmFacts]:
    """Return all versions by name, oldest first, each with the facts that hold there."""
    content = read_yaml(resources.files("simqueue.engines") / "vllm.yaml")
    facts: dict[str, Any] = {}
    versions = {}
    for entry in content["versions"]:
        facts = {**facts, **entry}
        versions[entry["version"]] = validated(VllmFacts, facts, f"vllm.yaml, version {entry['version']}")
    return versions


def vllm_facts(version: str) -> VllmFacts:
    """Return what holds at `version`.

    Raises
    ------
    InputError
        If nothing is known of it; the nearest known versions are named.
    """
    versions = vllm_versions()
    if version in versions:
        return versions[version]
    known = list(versions)
    wanted = _key(version)
    before = [name for name in known if _key(name) < wanted][-1:]
    after = [name for name in known if _key(name) > wanted][:1]
    nearest = " and ".join(before + after)
    text = f"nothing is known of vllm {version}; the nearest known: {nearest}; all: {', '.join(known)}"
    raise InputError(text, "version", value=version)


def _key(version: str) -> tuple[int, ...]:
    numbers = []
    for part in version.split("."):
        digits = "".join(character for character in part if character.isdigit())
        numbers.append(int(digits) if digits else -1)
    return tuple(numbers)
