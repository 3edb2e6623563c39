"""What a request would cost at each worker, and which worker gets it: the formula of Dynamo's KV router."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

HOST_CREDIT = 0.75
DISK_CREDIT = 0.25
"""Credit for a block on the host or on disk, beside `Weights.overlap_score_credit` for one on the device."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The keys of the formula, by Dynamo's names and with its defaults."""

    overlap_score_credit: float = 1.0
    overlap_score_credit_decay: float = 0.0
    prefill_load_scale: float = 1.0
    decode_active_request_weight: float = 0.0


class Worker(NamedTuple):
    """What the formula needs of a worker.

    Attributes
    ----------
    open_prefill_tokens : int
        Prompt tokens of its requests whose prefill has not ended.
    decode_blocks : int
        Different blocks of its active requests and of this prompt.
    requests : int
        Active requests.
    device_blocks, host_blocks, disk_blocks : int
        Leading blocks of the prompt that it has, by tier.
    """

    open_prefill_tokens: int = 0
    decode_blocks: int = 0
    requests: int = 0
    device_blocks: int = 0
    host_blocks: int = 0
    disk_blocks: int = 0


def costs(
    workers: Mapping[int, Worker], prompt_tokens: int, block_size: int, weights: Weights | None = None
) -> dict[int, float]:
    """Return the cost of a request at each worker, in blocks.

    The credit for a cached block falls with the prefill work that is open at its worker beyond that of the worker with
    the least, per block of the prompt, if there is a decay.
    """
    w = weights or Weights()
    least_open = min(worker.open_prefill_tokens for worker in workers.values())
    prompt_blocks = math.ceil(prompt_tokens / block_size)
    found = {}
    for number, worker in workers.items():
        credit = w.overlap_score_credit
        if w.overlap_score_credit_decay:
            excess_blocks = (worker.open_prefill_tokens - least_open) / block_size
            credit *= 1.0 / (1.0 + w.overlap_score_credit_decay * (excess_blocks / prompt_blocks))
        credited = credit * worker.device_blocks + HOST_CREDIT * worker.host_blocks + DISK_CREDIT * worker.disk_blocks
        prefill = max(0.0, _prefill_tokens(worker, prompt_tokens, block_size) / block_size - credited)
        active = w.decode_active_request_weight * worker.requests
        found[number] = w.prefill_load_scale * prefill + worker.decode_blocks + active
    return found


def _prefill_tokens(worker: Worker, prompt_tokens: int, block_size: int) -> int:
    """Return open prefill tokens and those of the prompt; cached blocks beyond the prompt give no credit for others."""
    return worker.open_prefill_tokens + max(prompt_tokens, worker.device_blocks * block_size)


def chances(of_costs: Mapping[int, float], temperature: float = 0.0) -> dict[int, float]:
    """Return the probability of each worker.

    Parameters
    ----------
    of_costs : mapping of int to float
    temperature : float
        0: the lowest cost, equal ones alike. Else the softmax of costs that are scaled to lie between 0 and 1.
    """
    lowest, highest = min(of_costs.values()), max(of_costs.values())
    if temperature == 0 or lowest == highest:
        best = [number for number, cost in of_costs.items() if cost == lowest]
        return dict.fromkeys(best, 1 / len(best))
    scale = (highest - lowest) * temperature
    parts = {number: math.exp((lowest - cost) / scale) for number, cost in of_costs.items()}
    total = sum(parts.values())
    return {number: part / total for number, part in parts.items() if part > 0}
