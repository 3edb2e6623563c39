"""Measured parts of steps: the layers without attention. No preset is fitted to them; they test the linear terms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from simqueue.calibration import StepCase
from simqueue.datafiles.csvtable import read_table
from simqueue.hardware import Model, ModelSettings, load_gpu, load_model
from simqueue.steptime import Batch, Coefficients
from studies.fidelity.steps import GPUS, STEPS_FILE

LIBRARY: Final = {"llama3-8b": "llama-3.1-8b", "llama3-70b": "llama-3.1-70b", "llama2-70b": "llama-2-70b"}


def part_cases(folder: Path) -> list[StepCase]:
    """Return vidur's rows: norms, projections, rope, MLP and additions of all layers, on one GPU of a TP group.

    Each case is one GPU's share of the layers, without head, attention and all-reduce.
    """
    gpus = {name: load_gpu(name, Path()) for name in GPUS.values()}
    models = {name: load_model(library, Path()) for name, library in LIBRARY.items()} | {"llama2-7b": _llama2_7b()}
    shares: dict[tuple[str, int], Model] = {}
    cases = []
    for row in read_table(folder / STEPS_FILE, STEPS_FILE).rows():
        if row["source"] != "vidur":
            continue
        tensor_parallel, tokens = row.integer("tp"), round(row.number("tokens_in_step"))
        key = (row["model"], tensor_parallel)
        if key not in shares:
            shares[key] = _share(models[row["model"]], tensor_parallel)
        batch = Batch(tokens, tokens, 0, (), 0)
        cases.append(
            StepCase(
                where=row.where,
                model=shares[key],
                gpu=gpus[GPUS[row["gpu"]]],
                tensor_parallel=1,
                batch=batch,
                measured_s=row.number("measured_ms") / 1e3,
                group=f"vidur TP {tensor_parallel}",
            )
        )
    return cases


def without_sequences(values: Coefficients) -> Coefficients:
    """Return the values without the time of sampling, which is not in these rows."""
    return values.model_copy(update={"seq_us": 0.0, "step_ms": 0.0})


def _share(model: Model, tensor_parallel: int) -> Model:
    parameters = model.layer_parameters // tensor_parallel
    return replace(model, parameters=parameters, lookup_parameters=0, head_parameters=0)


def _llama2_7b() -> Model:
    shape = {"layers": 32, "heads": 32, "kv_heads": 32, "head_dim": 128}
    return load_model(
        ModelSettings.model_validate(
            {"name": "llama-2-7b", **shape, "hidden": 4096, "intermediate": 11008, "vocab": 32000}
        )
    )
