"""The files of a search: the best systems as scenarios that can be run again, and a table of all systems."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from simqueue.installation import VERSION
from simqueue.outputs import reserved_folder
from simqueue.outputs.earlier import write_marker
from simqueue.scenario.paths import moved

if TYPE_CHECKING:
    from simqueue.decisions.tuning.answer import Standing, Tuning
    from simqueue.outputs import Place
    from simqueue.scenario.resolved import ResolvedScenario

MARKER: Final = "simqueue-tune.json"
"""The file that marks the folder of a search; it lists the others."""
TABLE: Final = "systems.csv"
ANSWER: Final = "tune.json"


def save(found: Tuning, directory: str | Path | Place) -> list[Path]:
    """Write the files of a search; see `Tuning.save`."""
    with reserved_folder(directory, MARKER) as place:
        with place.writing() as folder:
            folder.mkdir()
            names = [ANSWER, TABLE]
            content = json.dumps(found.plain(), ensure_ascii=False, indent=1, allow_nan=False, default=str)
            _write(folder / ANSWER, content + "\n")
            _write(folder / TABLE, found.table.to_csv(index=False, lineterminator="\n"))
            for rank, one in enumerate(found.top, start=1):
                names.append(f"best-{rank}.yaml")
                _write(folder / names[-1], _scenario_text(found, one, rank, place.target))
            write_marker(folder, MARKER, VERSION, names)
        return [place.path / name for name in names]


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _scenario_text(found: Tuning, one: Standing, rank: int, folder: Path) -> str:
    """Return a scenario file: what was written of the scenario, with the keys of one system, and the limits."""
    scenario = found.scenarios[one.number]
    keys = moved(scenario.written.keys, scenario.base_dir, folder.absolute())
    keys = {"name": f"best-{rank}", **{key: value for key, value in keys.items() if key != "name"}, **_limits(scenario)}
    cost = f"{one.gpus} GPUs" if one.usd_per_hour is None else f"{one.usd_per_hour:g} USD/hour, {one.gpus} GPUs"
    lines = [
        f"system {one.number} of a search by simqueue tune: {one.state}",
        one.label,
        cost,
        f"limits: {found.limits}",
    ]
    return "".join(f"# {line}\n" for line in lines) + yaml_text(keys)


def _limits(scenario: ResolvedScenario) -> dict[str, Any]:
    """Return the limits that the runs had, so that a run of the file shows whether they are met."""
    return {"slo": dict(scenario.slo)} if scenario.slo else {}


def yaml_text(values: Mapping[str, Any]) -> str:
    """Return plain values as YAML, in their order."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - loads slowly

    writer: Any = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False
    writer.allow_unicode = True
    writer.width = 1000
    text = StringIO()
    writer.dump(dict(values), text)
    return text.getvalue()
