"""vLLM's V1 scheduler, folded and step by step, with every check on: same bytes, every request served that can be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given

from ..helpers.profiles import examples
from ..helpers.recordings import differences
from .vllm_cases import VllmCase, talking_cases, vllm_cases


@examples(250, thorough=3000)
@given(vllm_cases() | talking_cases())
def test_folding_changes_nothing(case: VllmCase) -> None:
    """Folded and step-by-step runs leave the same bytes in every column of requests, steps and gaps."""
    assert differences(case.play(fast=True), case.play(fast=False)) == []


@examples(250)
@given(vllm_cases(most=8))
def test_every_request_is_served_that_can_be(case: VllmCase) -> None:
    """First come first served, every request that fits the pool gets all tokens, or what max_model_len leaves of them.

    With priorities two requests may push each other out for ever, which the run ends with a warning.
    """
    case = replace(case, reject=True, horizon_s=float("inf"))
    requests = case.play().requests
    if case.flags["policy"] == "fcfs":
        assert set(requests["status"]) <= {"finished", "rejected"}
    finished = requests["status"] == "finished"
    limit = requests["output_tokens"]
    if case.max_model_len is not None:
        limit = np.minimum(limit, case.max_model_len - requests["prompt_tokens"])
    assert (requests["tokens_emitted"][finished] == limit[finished]).all()


@examples(250)
@given(vllm_cases(most=8))
def test_a_prefix_cache_without_common_tokens_finds_only_ones_own(case: VllmCase) -> None:
    """Requests that share no tokens never hit at their first admission."""
    alone = tuple(replace(request, prompt=None, output_stream=None) for request in case.requests)
    recording = replace(case, requests=alone, prefix_caching=True).play()
    assert recording.prefix is not None
    assert recording.prefix.hit_tokens == 0
    assert set(recording.requests["cached_tokens"]) <= {0}
