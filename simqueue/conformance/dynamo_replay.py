"""Recorded runs of Dynamo's offline simulation: which worker gets each request, and how long its KV is on its way.

The times of steps come from Dynamo's own model of an engine, and are not compared. They are used for two things: the
order in which prefills end, and whether a decode worker is idle. With another ``router_mode`` than round robin, only
the transfers are compared: what the router knew of caches is not in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

_ROUNDED_MS = 1e-5
"""Times have six decimals; sums and differences of a few may differ by this much."""
_BYTES_PER_GB = 1e9
_MS_PER_S = 1e3

Row = Mapping[str, Any]


def differences(recorded: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between a recording and our decisions."""
    call, rows = recorded["call"], recorded["requests"]
    apart = "num_prefill_workers" in call
    pools = [("source_held_ms" if apart else "arrival_time_ms", "decode_worker", "num_decode_workers")]
    if apart:
        pools.insert(0, ("arrival_time_ms", "prefill_worker", "num_prefill_workers"))
    for time, worker, number_key in pools:
        workers = call[number_key if apart else "num_workers"]
        if call.get("router_mode", "round_robin") == "round_robin":
            yield from _turns(rows, time, worker, workers)
        else:
            yield from _in_range(rows, worker, workers)
    if not apart:
        return
    for number, row in enumerate(rows):
        for line in _hand_over(row, rows, call):
            yield f"request {number}: {line}"


def _in_range(rows: Sequence[Row], worker: str, workers: int) -> Iterator[str]:
    """Yield what is no worker: by cache and load, times alone do not tell which one it must be."""
    for number, row in enumerate(rows):
        if not 0 <= row[worker] < workers:
            yield f"request {number}: {worker} {row[worker]}, there are {workers}"


def _turns(rows: Sequence[Row], time: str, worker: str, workers: int) -> Iterator[str]:
    """Yield what differs from round robin in the order of a time; what happens at once may be in any order."""
    at_arrival = time == "arrival_time_ms"
    ordered = sorted(enumerate(rows), key=lambda numbered: numbered[1][time])
    turn = 0
    for _, group in groupby(ordered, key=lambda numbered: numbered[0] if at_arrival else numbered[1][time]):
        together = list(group)
        due = sorted((turn + i) % workers for i in range(len(together)))
        if sorted(row[worker] for _, row in together) != due:
            numbers = " and ".join(str(number) for number, _ in together)
            yield f"request {numbers}: {worker} {due}, recorded {[row[worker] for _, row in together]}"
        turn += len(together)


def _hand_over(row: Row, rows: Sequence[Row], call: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs in the reservation at the decode worker and in the transfer to it."""
    held, reserved, activated = (
        row[key] for key in ("source_held_ms", "destination_reserved_ms", "destination_activated_ms")
    )
    if reserved < held - _ROUNDED_MS or (_is_idle(row, rows, held) and reserved > held + _ROUNDED_MS):
        yield f"reserved at {reserved} ms, held from {held} ms"
    if row["source_released_ms"] < activated - _ROUNDED_MS:
        yield f"released at {row['source_released_ms']} ms, before it was activated at {activated} ms"
    transfers = _transfers_ms(row, call)
    if not transfers:
        return
    ready = [reserved + transfer for transfer in transfers]
    at_once = any(abs(activated - one) <= _ROUNDED_MS for one in ready)
    later = activated > min(ready) and not _is_idle(row, rows, min(ready))
    if not at_once and not later:
        yield f"activated {activated - reserved:.6f} ms after the reservation, transfer {transfers[0]:.6f} ms"


def _is_idle(row: Row, rows: Sequence[Row], time_ms: float) -> bool:
    """Return whether the decode worker of a request has no other one in it at a time."""
    return not any(
        other is not row
        and other["decode_worker"] == row["decode_worker"]
        and other["destination_activated_ms"] <= time_ms + _ROUNDED_MS
        and time_ms <= other["terminal_time_ms"] + _ROUNDED_MS
        for other in rows
    )


def _transfers_ms(row: Row, call: Mapping[str, Any]) -> list[float]:
    """Return how long the transfer takes: of the whole prompt, or of what the decode worker does not have."""
    engine = call["prefill_engine_args"]["engine"]
    gb_per_s, token_bytes = engine.get("kv_transfer_bandwidth"), engine.get("kv_transfer_bytes_per_token")
    if not gb_per_s or not token_bytes:
        return []
    whole = row["input_length"]
    tokens = [whole, whole - row.get("decode_reused_input_tokens", 0)]
    return [n * token_bytes / (gb_per_s * _BYTES_PER_GB) * _MS_PER_S for n in tokens]
