"""A small fleet whose whole run can be worked out by hand, for tests of results."""

from __future__ import annotations

from typing import Any

STEP_S = 0.125
"""Every step takes this long, whatever it computes: a request of n output tokens that runs alone takes n steps."""


def asked(at_s: float, prompt: int, output: int, **keys: Any) -> dict[str, Any]:
    """Return a request of a scenario."""
    return {"arrival_s": at_s, "prompt_tokens": prompt, "output_tokens": output, **keys}


def small(fleet: Any, *requests: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Return a scenario with one policy ``p``, which has this fleet."""
    return {
        "step_time": {"kind": "constant", "seconds": STEP_S},
        "kv_cache": {"blocks": 10, "block_size": 16},
        "workload": {"requests": list(requests)},
        "policies": {"p": {"scheduler": "continuous", "max_num_seqs": 2, "fleet": fleet}},
        **keys,
    }
