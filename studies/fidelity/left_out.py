"""Counts of the measured rows that no preset is fitted to, by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simqueue.datafiles.csvtable import Row, read_table
from studies.fidelity.blackwell import BLACKWELL_FILE, reason_not_used
from studies.fidelity.evaluate import SERVED_PRESETS
from studies.fidelity.moe_layers import LAYERS_FILE, reason_not_a_layer
from studies.fidelity.moe_served import FITTED, LEFT_OUT
from studies.fidelity.power import reason_no_power
from studies.fidelity.served import GPUS, MODELS, SERVED_FILE, doubt, selected
from studies.fidelity.steps import STEPS_FILE, reason_not_a_case
from studies.fidelity.token_times import TOKENS_FILE

_SPLIT: Final = "prefill and decode on separate servers (mode `disagg`); one replica is simulated here"
_UNKNOWN: Final[Mapping[str, str]] = {
    "Qwen/Qwen3.5-397B-A17B": "Qwen3.5-397B-A17B: layers with linear attention, which are not modelled",
    "moonshotai/Kimi-K2.5": "Kimi-K2.5: experts in int4, which were not measured",
    "zhipuai/GLM-5": "GLM-5: sparse attention, which is not modelled",
}
_COMPARED: Final = "mixtures of experts that no preset is fitted to; compared with the nearest one above"
_UNFITTED: Final = "{engine}, {model} {precision} on {gpu}: not fitted; compared with the nearest preset below"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Unused rows of one table, for one reason.

    Attributes
    ----------
    table : str
        File of the measurements.
    rows : int
    why : str
    """

    table: str
    rows: int
    why: str


def left_out(folder: Path) -> list[LeftOut]:
    """Count the rows that no preset is compared with or fitted to, by table and reason, in order of appearance."""
    counts = Counter(_reasons(folder))
    return [LeftOut(table, rows, why) for (table, why), rows in counts.items()]


def _reasons(folder: Path) -> Iterator[tuple[str, str]]:
    for file, reason in _REASONS.items():
        for row in read_table(folder / file, file).rows():
            why = reason(row)
            if why is not None:
                yield file, why


def _why_no_step(row: Row) -> str | None:
    return None if row["source"] == "vidur" else reason_not_a_case(row)


def _why_not_served(row: Row) -> str | None:
    if any(selected(row, *selection) for *selection, _ in SERVED_PRESETS) or any(one.has(row) for one in FITTED):
        return None
    if row["mode"] != "agg":
        return _SPLIT
    if row["model_path"] not in MODELS:
        return _UNKNOWN[row["model_path"]]
    return doubt(row) or _nearest(row)


def _nearest(row: Row) -> str:
    """Return where a row is compared that no preset is fitted to."""
    if any(choice.has(row) for choice in LEFT_OUT):
        return _COMPARED
    return _UNFITTED.format(
        engine=row["backend"],
        model=MODELS[row["model_path"]],
        precision=row["precision"] or "bf16",
        gpu=GPUS[row["system"]],
    )


_REASONS: Final[Mapping[str, Callable[[Row], str | None]]] = {
    STEPS_FILE: _why_no_step,
    SERVED_FILE: _why_not_served,
    LAYERS_FILE: reason_not_a_layer,
    TOKENS_FILE: reason_no_power,  # every row with a known time between tokens also has a known power
    BLACKWELL_FILE: reason_not_used,
}
"""Tables, and what says why a row of them is not used."""
