"""The JSON Schema, and the reference of keys that is generated from it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simqueue.hardware import gpu_names
from simqueue.routing import ROUTERS
from simqueue.scenario import Scenario
from simqueue.scenario.schema import json_schema

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scenario.md"


def _printed(*arguments: str) -> str:
    """Return what the command prints in its own process, in which only packaged schedulers are registered."""
    done = subprocess.run(
        [sys.executable, "-m", "simqueue", "schema", *arguments], check=True, capture_output=True, encoding="utf-8"
    )
    return done.stdout


def test_committed_reference_is_current() -> None:
    """The page in docs is the current output of the command."""
    assert PAGE.read_text(encoding="utf-8") == _printed("--reference"), "run: " + PAGE.read_text().splitlines()[0]


def test_every_key_is_described() -> None:
    """The reference lists each key of the scenario with type, default and meaning."""
    page = PAGE.read_text(encoding="utf-8")
    top = page.partition("## Top level")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in top.splitlines() if line.startswith("| `")
    ]
    assert [row[0].strip("`") for row in rows] == list(Scenario.model_fields)
    for row in rows:
        assert row[1]
        assert row[3]
        assert row[-1]


def test_links_of_the_reference_lead_somewhere() -> None:
    """Each link of the page goes to one of its headings, by GitHub's rules for anchors."""
    page = PAGE.read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", page, flags=re.MULTILINE)
    anchors = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    links = re.findall(r"\]\(#(.*?)\)", page)
    assert links
    assert [link for link in links if link not in anchors] == []


def test_schema_is_json_and_knows_schedulers() -> None:
    """The command prints the schema, in which a policy is a choice between schedulers and engines."""
    schema = json.loads(_printed())
    choices = schema["properties"]["policies"]["additionalProperties"]["oneOf"]
    policies = [schema["$defs"][choice["$ref"].rpartition("/")[2]]["properties"] for choice in choices]
    named = {keys[tag]["const"] for keys in policies for tag in ("scheduler", "engine") if tag in keys}
    assert {"chunked", "continuous", "static", "vllm"} <= named


@pytest.mark.parametrize("key", ["horizon_s", "clock_resolution_s", "warmup_s"])
def test_units_stand_in_the_schema(key: str) -> None:
    """Keys with a unit have it in the schema."""
    assert json_schema()["properties"][key]["unit"] == "s"


def test_the_schema_offers_the_names_of_the_package() -> None:
    """Where a name or a file is allowed, editors can offer the names; other text stays valid."""
    schema = json_schema()
    gpu = schema["properties"]["gpu"]["anyOf"][0]["oneOf"][0]
    assert gpu == {"anyOf": [{"enum": gpu_names()}, {"type": "string"}]}
    assert "0.33.0" in schema["$defs"]["VllmPolicy"]["properties"]["version"]["enum"]
    assert "ideal" in schema["$defs"]["RooflineSettings"]["properties"]["preset"]["anyOf"][0]["enum"]


def test_a_router_is_a_name_or_a_mapping_of_its_kind() -> None:
    """The schema of `router` has the names of all routers, and for each a mapping with its own keys alone."""
    schema = json_schema()
    names, mappings, _ = schema["$defs"]["FleetSettings"]["properties"]["router"]["anyOf"]
    assert names == {"enum": sorted(ROUTERS)}
    found = [schema["$defs"][choice["$ref"].rpartition("/")[2]] for choice in mappings["oneOf"]]
    assert [one["properties"]["kind"]["const"] for one in found] == sorted(ROUTERS)
    for one in found:
        own = ROUTERS[one["properties"]["kind"]["const"]].Settings.model_fields.items()
        assert set(one["properties"]) == {"kind", *(field.alias or key for key, field in own)}
        assert one["additionalProperties"] is False


def test_a_group_is_offered_the_keys_of_all_policies() -> None:
    """The schema of a group has its own keys and those of all policies, without defaults: they are the policy's."""
    schema = json_schema()
    group = schema["$defs"]["GroupSettings"]
    policies = [one["properties"] for name, one in schema["$defs"].items() if name.endswith("Policy")]
    offered = {key for keys in policies for key in keys} - {"fleet"}
    assert set(group["properties"]) == {"replicas", "weight", *offered}
    assert all("default" not in value for key, value in group["properties"].items() if key in offered)
    assert {"const": "static"}.items() <= group["properties"]["scheduler"]["anyOf"][-1].items()
