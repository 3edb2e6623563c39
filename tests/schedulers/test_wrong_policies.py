"""Policies of one's own that spend what they do not have, or get nowhere: the run ends with one sentence."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from simqueue.errors import RunError
from simqueue.request import Job
from simqueue.schedulers import (
    Chunked,
    Continuous,
    FirstComeFirstServed,
    Later,
    LlamaCpp,
    Plan,
    Policy,
    Static,
    Step,
    WaitingQueue,
)
from simqueue.simulation.progress import MOST_WAKES, PATIENCE
from simqueue.steptime import Batch

from ..helpers.playing import make_policy, rows, seen, simulate

KEYS: dict[str, Any] = {"max_num_seqs": 2, "max_num_batched_tokens": 64}
ASKED = [(0.0, 100, 5), (0.0, 100, 5), (0.0, 10, 5)]


def refused(policy: type[Policy], keys: dict[str, Any] = KEYS, *, fast: bool = True) -> str:
    """Return the sentence with which a run of `ASKED` fails."""
    with pytest.raises(RunError) as found:
        simulate(make_policy(policy, keys), ASKED, fast=fast)
    (line,) = str(found.value).splitlines()
    assert policy.__name__ in line
    return line


class WholePrompts(Chunked):
    """Gives every prompt whole, whatever is left of the budget."""

    steady_rules = ("chunk",)

    def chunk(self, job: Job, step: Step) -> int:
        """Return all that is left of the prompt."""
        return job.rest_tokens


class Overdrawn(Chunked):
    """Has fewer tokens than requests that decode."""

    def budget(self) -> int:
        """Return 64 tokens at first, then 1."""
        return 1 if self.decodes.seqs > 1 else 64


class BeyondThePrompt(Chunked):
    """Computes more of a prompt than there is."""

    def compose(self, step: Step) -> None:
        """Seat the head of the queue and compute one token too many."""
        job = self.waiting.pop()
        step.seat(job, 0)
        self.kv.take(self.kv.held(job.request, 101))
        step.prefill(job, 101)


class TooManySeats(Chunked):
    """Seats every waiting request at once."""

    def compose(self, step: Step) -> None:
        """Seat all."""
        while self.waiting:
            step.seat(self.waiting.pop(), 0)
        step.continue_prefills()


class KeepsTheHead(FirstComeFirstServed):
    """Gives its head away without letting it go."""

    def pop(self) -> Job:
        """Return the head."""
        return self.head


class SeatedTwice(Chunked):
    """Admits one request again and again."""

    def queue(self) -> WaitingQueue:
        """Return a queue that keeps its head."""
        return KeepsTheHead()


class Insists(Chunked):
    """Admits until it succeeds."""

    def may_admit(self, job: Job, step: Step) -> bool:
        """Admit never."""
        return False

    def compose(self, step: Step) -> None:
        """Try for ever."""
        while self.waiting:
            step.admit_head()


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (WholePrompts, "chunk gives 100 tokens to 'a': must be 0 to 64, what is left of the budget of the step"),
        (Overdrawn, "a step takes 2 more tokens than its budget"),  # all three decode
        (BeyondThePrompt, "step.prefill needs 1 to 100 tokens, not 101"),
        (TooManySeats, "step.seat needs a free seat, all 2 are taken"),
        (SeatedTwice, "step.seat needs a waiting request, 'a' has a seat"),
        (Insists, "step.admit_head gave False for 'a' 1001 times in a row in one step"),
    ],
)
def test_spending_what_is_not_there_is_an_error_with_the_name_of_the_policy(
    policy: type[Policy], said: str, fast: bool
) -> None:
    """Tokens of the budget, tokens of a prompt, seats: each is counted where it is spent, with and without checks."""
    assert said in refused(policy, KEYS if policy is not Overdrawn else KEYS | {"max_num_seqs": 3}, fast=fast)


class OnePromptAlone(Continuous):
    """Inherits the rule that a prompt longer than the budget runs alone."""


def test_a_prompt_longer_than_the_budget_runs_alone_where_prompts_are_not_split() -> None:
    """`continuous` has this rule: 100 tokens run in a step of their own, though the budget is 64."""
    recording = simulate(make_policy(OnePromptAlone, KEYS), [(0.0, 100, 1), (0.0, 100, 1)])
    assert rows(recording, "prefill_tokens") == [(100,), (100,)]


class TwoLongPrompts(Continuous):
    """Runs long prompts together."""

    def chunk(self, job: Job, step: Step) -> int:
        """Return all that is left of the prompt."""
        return job.rest_tokens


def test_a_second_prompt_beside_a_long_one_is_too_much() -> None:
    """The exception holds for one prompt alone: a of 40 tokens, then b of 100 beside it."""
    with pytest.raises(RunError, match=r"TwoLongPrompts\.chunk gives 100 tokens to 'b': must be 0 to 24"):
        simulate(make_policy(TwoLongPrompts, KEYS), [(0.0, 40, 1), (0.0, 100, 1)])


def test_answers_of_llamacpp_may_be_more_than_its_batch() -> None:
    """Its server computes a step with more answers than n_batch in several pieces; prompts then get nothing."""
    recording = simulate(
        make_policy(LlamaCpp, {"n_parallel": 3, "n_batch": 2}), [(0.0, 1, 9), (0.0, 1, 9), (0.0, 4, 2)]
    )
    columns = ("repeat", "decode_seqs", "prefill_tokens")
    assert rows(recording, *columns) == [(1, 0, 2), (8, 2, 0), (1, 0, 2), (1, 0, 2), (1, 1, 0)]
    assert seen(recording)["c"] == (11.0, 12.0)


class AtOnce(Chunked):
    """Asks to be asked again at once."""

    def plan(self, now_s: float) -> Any:
        """Return this very instant."""
        return Later(now_s)


class SoonAgain(Chunked):
    """Asks to be asked again at the next instant that there is."""

    def plan(self, now_s: float) -> Any:
        """Return the next instant."""
        return Later(math.nextafter(now_s, math.inf))


class SameAgain(Chunked):
    """Gives its first plan for ever."""

    kept: Plan | None

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.kept = None

    def plan(self, now_s: float) -> Plan | None:
        """Return the first plan."""
        if self.kept is None:
            self.kept = super().plan(now_s)
        return self.kept


class CopiesOfTheFirst(SameAgain):
    """Gives copies of its first plan, which completes a prompt."""

    def plan(self, now_s: float) -> Plan | None:
        """Return a copy."""
        return _copy(super().plan(now_s))


class NothingToDo(Static):
    """Plans steps without work."""

    def plan(self, now_s: float) -> Plan:
        """Return an empty plan."""
        return Plan(Batch(), 1, 0, 0, 0, Batch(), 0)


class Preempts(Static):
    """Preempts for ever in one instant, and never looks as before."""

    def plan(self, now_s: float) -> Plan:
        """Return a plan without work that preempts."""
        return Plan(Batch(), 1, 0, 0, 0, Batch(), 0, preempted=[self.waiting.head])

    def state(self) -> object:  # type: ignore[override] # a state that never comes again
        """Return something new."""
        return object()


def _copy(plan: Plan | None) -> Plan | None:
    if plan is None:
        return None
    names = ("batch", "repeat", "ticking", "running", "waiting", "work", "blocks_used")
    return Plan(**{name: getattr(plan, name) for name in names}, first=list(plan.first))


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (AtOnce, "AtOnce.plan gives Later(time_s=0.0) at 0 s: must be a Plan, None, or Later with a later time"),
        (SoonAgain, f"SoonAgain.plan was asked {MOST_WAKES + 1} times in a row"),
        (SameAgain, "SameAgain.plan gives the plan before again at 1 s: must be a new one"),
        (CopiesOfTheFirst, "this would never end"),
        (NothingToDo, "NothingToDo.plan gives"),
        (Preempts, "Preempts.plan gives"),
    ],
)
def test_a_policy_that_gets_nowhere_ends_with_a_sentence(policy: type[Policy], said: str, fast: bool) -> None:
    """After a bounded number of plans: requests of 100 + 5, 100 + 5 and 10 + 5 tokens cannot take more steps."""
    line = refused(policy, {"max_num_seqs": 2} if issubclass(policy, Static) else KEYS, fast=fast)
    assert said in line
    if policy in (NothingToDo, Preempts, CopiesOfTheFirst):
        assert f"{PATIENCE + 2 * (105 + 105 + 15) + 1} plans in a row" in line


class Generous(Static):
    """Gives its waves more steps than they need."""

    steady_rules = ("plan",)
    repeats = 0

    def plan(self, now_s: float) -> Any:
        """Change the number of repeats."""
        plan = super().plan(now_s)
        if isinstance(plan, Plan) and plan.repeat > 1:
            plan.repeat = self.repeats
        return plan


class GenerousSteps(Chunked):
    """Repeats steps beyond the last token."""

    steady_rules = ("plan",)
    repeats = 0

    def plan(self, now_s: float) -> Plan | None:
        """Change the number of repeats."""
        plan = super().plan(now_s)
        if plan is not None and plan.repeat > 1:
            plan.repeat = self.repeats
        return plan


@pytest.mark.parametrize("policy", [Generous, GenerousSteps])
@pytest.mark.parametrize(
    ("repeats", "said"),
    [
        (6, "a plan repeats beyond the last token of a request"),
        (10**5, "plan gives a plan with repeat = 100000, but no output is longer than 5"),
        (10**9, "plan gives a plan with repeat = 1000000000, but no output is longer than 5"),
    ],
)
def test_repeats_beyond_the_last_token_are_refused(policy: Any, repeats: int, said: str) -> None:
    """A plan that claims to hold for longer than any answer is an error, and takes no memory."""
    made = type(policy.__name__, (policy,), {"repeats": repeats})
    assert said in refused(made, {"max_num_seqs": 2} if policy is Generous else KEYS)


class DecodesOn(Static):
    """Repeats the decode step of its first wave for ever, each time as a new plan."""

    kept: Any

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.kept = None

    def plan(self, now_s: float) -> Any:
        """Return the prefill step, then copies of the first decode step."""
        plan = super().plan(now_s) if self.kept is None else self.kept
        if isinstance(plan, Plan) and not plan.first:
            self.kept = plan
            return replace(plan, ended=[], finishing=[])
        return plan


def test_a_request_that_gets_more_tokens_than_it_asked_for_is_an_error() -> None:
    """Found when the gaps between tokens are next written down, at most some thousand steps later."""
    with pytest.raises(RunError, match=r"DecodesOn: a plan is wrong: 'a' decodes on after its 5 tokens"):
        simulate(make_policy(DecodesOn, {"max_num_seqs": 2}), ASKED, fast=False)
