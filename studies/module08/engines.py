"""vLLM's scheduler and llama.cpp's slots on the same GPU, from one request to saturation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from simqueue.experiment import run
from studies.module08.sweep import H100, LENGTHS, SEED

BACKLOGS: Final = (1, 4, 16, 64, 256)
_UNIFIED: Final = {"scheduler": "llamacpp", "n_ctx": 131_072}
VLLM: Final = "vllm 0.33.0"
ENGINES: Final[Mapping[str, Mapping[str, Any]]] = {
    VLLM: {"engine": "vllm", "version": "0.33.0", "max_model_len": 8192},
    "llama.cpp, 1 slot": {**_UNIFIED, "n_parallel": 1},
    "llama.cpp, 4 slots": {**_UNIFIED, "n_parallel": 4},
    "llama.cpp, 16 slots": {**_UNIFIED, "n_parallel": 16},
    "llama.cpp, 16 slots, split context": {**_UNIFIED, "n_parallel": 16, "kv_unified": False},
    "llama.cpp, 64 slots": {**_UNIFIED, "n_parallel": 64},
    "llama.cpp, 64 slots, split context": {**_UNIFIED, "n_parallel": 64, "kv_unified": False},
}


@dataclass(frozen=True, slots=True)
class EngineRow:
    """One engine, with all requests arriving at time 0.

    Attributes
    ----------
    backlog : int
        Number of requests.
    engine : str
    completed : int
        The other requests were rejected: they are longer than the context of a slot.
    tokens_per_s, ttft_p95_ms : float or None
    ratio : float or None
        Tokens/s of vLLM divided by those of this engine, both of completed requests.
    """

    backlog: int
    engine: str
    completed: int
    tokens_per_s: float | None
    ttft_p95_ms: float | None
    ratio: float | None


def engine_rows() -> list[EngineRow]:
    """Simulate each engine with each number of requests, with the module's lengths on an H100."""
    rows = []
    for backlog in BACKLOGS:
        names = {f"e{index}": engine for index, engine in enumerate(ENGINES)}
        result = run(
            {
                "name": "engines",
                "seed": SEED,
                "workload": {
                    "arrivals": {"process": "all_at_once"},
                    "num_requests": backlog,
                    **LENGTHS,
                },
                "policies": {key: dict(ENGINES[engine]) for key, engine in names.items()},
                **H100.keys,
            }
        )
        summary = {names[str(row["policy"])]: row for row in result.summary_rows}
        fastest = _number(summary[VLLM]["output_throughput"])
        for engine, row in summary.items():
            speed = _number(row["output_throughput"])
            ratio = fastest / speed if fastest and speed else None
            completed = row["completed"]
            ttft = _number(row["p95_ttft_ms"])
            rows.append(EngineRow(backlog, engine, completed if isinstance(completed, int) else 0, speed, ttft, ratio))
    return rows


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None
