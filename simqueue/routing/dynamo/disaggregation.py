"""Conditional disaggregation: whether a prompt is computed by the decode worker itself, without a prefill worker.

Source: ai-dynamo 1.6.1, the rules and default values of its prefill router.
"""

from __future__ import annotations

from typing import Literal

Policy = Literal["isl_bounding", "prefill_load", "isl_or_load"]


def skips_remote_prefill(
    prompt_tokens: int,
    cached_tokens: int,
    *,
    policy: Policy = "isl_bounding",
    prefill_is_busy: bool | None = None,
    eff_isl_threshold: int = 2048,
    eff_isl_ratio_threshold: float = 0.7,
) -> bool:
    """Return whether the decode worker computes the prompt.

    Parameters
    ----------
    prompt_tokens : int
    cached_tokens : int
        Tokens of whole blocks at the beginning of the prompt that the decode worker has.
    policy : {'isl_bounding', 'prefill_load', 'isl_or_load'}
        ``isl_bounding``: if the rest of the prompt is short, and a small share of it. ``prefill_load``: if the chosen
        prefill worker is busy. ``isl_or_load``: in either case.
    prefill_is_busy : bool or None
        Whether the chosen prefill worker has more prefill tokens open than its queue threshold; None: not known, which
        counts as no.
    eff_isl_threshold : int
        The rest must have fewer tokens.
    eff_isl_ratio_threshold : float
        The rest must be a smaller share of the prompt.
    """
    rest = max(0, prompt_tokens - cached_tokens)
    is_short = rest < eff_isl_threshold and rest / max(prompt_tokens, 1) < eff_isl_ratio_threshold
    is_busy = bool(prefill_is_busy)
    return {"isl_bounding": is_short, "prefill_load": is_busy, "isl_or_load": is_short or is_busy}[policy]
