"""SGLang's scheduler, folded and step by step, with every check on: same bytes, every request served that can be."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from simqueue.errors import RunError

from ..helpers.profiles import examples
from ..helpers.recordings import differences
from .sglang_cases import SglangCase, sglang_cases

STOPS = "this version of the engine"
"""Begin of the reason of an error where the engine itself would stop."""


def outcome(case: SglangCase, *, fast: bool) -> object:
    """Return the recording of a case, or the error with which the engine would stop."""
    try:
        return case.play(fast=fast)
    except RunError as error:
        if STOPS not in str(error):
            raise
        return str(error)


@examples(150, thorough=3000)
@given(sglang_cases())
def test_folding_changes_nothing(case: SglangCase) -> None:
    """Folded and step-by-step runs leave the same bytes in every column of requests, steps and gaps."""
    fast, stepped = outcome(case, fast=True), outcome(case, fast=False)
    if isinstance(fast, str) or isinstance(stepped, str):
        assert fast == stepped
    else:
        assert differences(fast, stepped) == []  # type: ignore[arg-type]


@examples(100, thorough=2000)
@given(sglang_cases(most=8, patient=True))
def test_every_request_is_served_that_can_be(case: SglangCase) -> None:
    """Every request gets all of its tokens, but where the engine itself fails.

    Before 0.5 one that is retracted late can wait for ever, and 0.5.6 loses requests that it preempts in vain.
    """
    case = replace(case, horizon_s=float("inf"))
    recording = outcome(case, fast=True)
    if isinstance(recording, str):
        return
    requests = recording.requests  # type: ignore[attr-defined]
    failures = {"0.5.6": {"rejected"}} if case.version.startswith("0.5") else {case.version: {"unfinished"}}
    assert set(requests["status"]) <= {"finished"} | failures.get(case.version, set())
    finished = requests["status"] == "finished"
    assert (requests["tokens_emitted"][finished] == requests["output_tokens"][finished]).all()


@examples(60, thorough=1000)
@given(sglang_cases(most=8))
def test_adding_up_one_by_one_decides_the_same(case: SglangCase) -> None:
    """An observed scheduler adds the reserves up request by request, as the engine does; counters decide the same."""
    plain = outcome(case, fast=True)
    if not isinstance(plain, str):
        assert differences(plain, case.play(observed=True)) == []  # type: ignore[arg-type]
