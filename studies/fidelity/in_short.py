"""The first section of the fidelity report: errors on rows that were not fitted, targets, and what others publish."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from simqueue.calibration import error_row
from simqueue.steptime import load_preset
from studies.fidelity.evaluate import Compared
from studies.fidelity.replay import Replay
from studies.fidelity.tables import table

_TEXT: Final = """\
## In short

Absolute errors on rows that were not fitted, within the range of the presets (interpolation: one row in five is held
out in turn); errors outside of it are [below](#outside-the-data-of-a-preset). Single steps are whole sets, which a
fit of nine values to some 900 rows does not change. The figures of others are those that they publish on rows of the
same kind, on other rows and by other rules, so that they compare orders of magnitude only. TTFTs of TensorRT-LLM were
not fitted (median errors of 56 to 80 %, see below), and no TTFT on B200. `step_ms` of both replays was fitted to them.
"""

_STEPS: Final = ("3", "4", "4")
"""Wanted errors of steps on H100, H200 and A100."""

_TARGETS: Final = {
    "TPOT, dense, median": "5",
    "TTFT, dense, median": "12",
    "TPOT, mixtures of experts, mean": "10",
    "TTFT, mixtures of experts, mean": "20",
}

_OTHERS: Final = """\
| simulator | rows | error % |
|---|---|---|
| BLIS (inference-sim) | served TTFT | 18 to 19 |
| BLIS (inference-sim) | served TPOT | 7 to 20 |
| AIConfigurator | served TPOT | 21 to 25 |
| LLMServingSim | mean E2EL of two replays | 1 to 2 |
"""


def in_short(steps: Sequence[Compared], replays: Sequence[Replay], names: Sequence[str]) -> Iterator[str]:
    """Yield the section; `names` are the presets of served runs."""
    yield _TEXT
    kernels = [one for one in steps if one.source == "aiconfigurator"]
    rows = [
        (f"steps, {one.gpu}, mean", f"{error_row('', one.calibrated).mape:.1f}", wanted, "")
        for one, wanted in zip(kernels, _STEPS, strict=True)
    ]
    for what, wanted in _TARGETS.items():
        found = _held_out(names, what)
        above = [f"`{name}` {error:.1f}" for name, error in found.items() if error > float(wanted)]
        rows.append((what, _span(found), wanted, ", ".join(above)))
    for one in replays:
        measured, simulated = (float(np.mean(side["e2el_ms"])) for side in (one.measured, one.simulated))
        rows.append(
            (f"mean E2EL of the replay on {one.run.gpu}", f"{100 * abs(simulated / measured - 1):.1f}", "5", "")
        )
    yield table(("what", "error %", "wanted at most", "above it"), rows)
    yield "What others publish:\n"
    yield _OTHERS


def _held_out(names: Sequence[str], what: str) -> dict[str, float]:
    """Return the held-out error of each preset of this kind of model, by its name."""
    found = {}
    for name in names:
        card = load_preset(name).card
        is_dense = card.valid.experts in (None, ["none"])
        if is_dense != ("dense" in what):
            continue
        wanted = [one for one in card.errors if "held out" in one.data and ("TTFT" in one.data) == ("TTFT" in what)]
        for one in wanted:
            error = one.median_percent if "median" in what else one.mape_percent
            if error is not None:
                found[name] = error
    return found


def _span(found: Mapping[str, float]) -> str:
    if not found:
        return "-"
    return f"{min(found.values()):.1f} to {max(found.values()):.1f} ({len(found)} presets)"
