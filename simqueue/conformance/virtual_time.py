"""What recordings of schedulers have in common: a linear cost of steps in microseconds of a virtual clock."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

US_PER_S: Final = 1_000_000
US_PER_MS: Final = 1000


def recorded_scenario(
    recorded: Mapping[str, Any],
    *,
    kv_cache: Mapping[str, Any],
    max_model_len: int,
    requests: Sequence[Mapping[str, Any]],
    policy: Mapping[str, Any],
    not_flags: Sequence[str],
) -> dict[str, Any]:
    """Return the keys of the scenario that was recorded.

    Parameters
    ----------
    recorded : mapping
        The content of a recording.
    kv_cache, max_model_len, requests
        Keys of the scenario.
    policy : mapping
        Keys of the policy beside the flags of the engine.
    not_flags : sequence of str
        Keys of the recorded configuration that are no flags.
    """
    config, cost = recorded["config"], recorded["step_cost"]
    flags = {key: value for key, value in config.items() if key not in not_flags and value is not None}
    return {
        "name": recorded["case"],
        "step_time": {
            "kind": "linear",
            "overhead_s": cost["base_us"] / US_PER_S,
            "per_prefill_token_s": cost["per_prefill_token_us"] / US_PER_S,
            "per_decode_s": cost["per_decode_us"] / US_PER_S,
        },
        "kv_cache": kv_cache,
        "max_model_len": max_model_len,
        "unservable": "wait",
        "clock_resolution_s": 1e-6,
        "workload": {"requests": list(requests)},
        "policies": {"recorded": {**policy, **flags}},
    }


def request_keys(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a recorded request that all engines have."""
    return {
        "id": request["id"],
        "arrival_s": _seconds(request["arrival_ms"]),
        "prompt_tokens": request["prompt_len"],
        "output_tokens": request["output_len"],
        "prompt": request["prompt"],
        "output_stream": request["out_stream"],
    }


def _seconds(milliseconds: float) -> float:
    """Return a time of a recording in seconds, rounded once: twice would miss the microsecond at which a step ends."""
    return float(Decimal(repr(milliseconds)) / US_PER_MS)


def time_differences(name: str, real: Mapping[str, Any], columns: Mapping[str, Any], row: int) -> Iterator[str]:
    """Yield the differences of the first token and the finish of a request, in microseconds.

    Parameters
    ----------
    name : str
        Of the request.
    real : mapping
        What is recorded of it.
    columns : mapping
        The table of requests.
    row : int
    """
    for key, column in (("first_token_ms", "first_token_s"), ("finish_ms", "finish_s")):
        mine, value = columns[column][row], real[key]
        mine_us = None if math.isnan(mine) else round(mine * US_PER_S)  # NaN: did not happen
        value_us = None if value is None else round(value * US_PER_MS)
        if mine_us != value_us:
            yield f"request {name}: {column} {mine_us} us, recorded {value_us} us"
