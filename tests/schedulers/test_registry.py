"""What is said of a policy of one's own that cannot work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simqueue.errors import InputError, RunError
from simqueue.request import Job, Request
from simqueue.schedulers import SCHEDULERS, Chunked, IterationPolicy, Later, Plan, Policy, scheduler
from simqueue.schedulers.vllm_v1 import VllmV1
from simqueue.steptime import Batch, StepTime

from ..helpers.playing import make_policy, seen, simulate


class NoChunk(IterationPolicy):
    """Leaves out how much a request gets."""


class NoCommit(Policy):
    """Leaves out everything."""


class Fixed(Chunked):
    """Has as an attribute of the class what is the object's."""

    prefilling = ()


class Misspelt(Chunked):
    """Declares a rule as steady that it does not define."""

    steady_rules = ("chunks",)


class OneText(Chunked):
    """Forgets the comma of a tuple."""

    steady_rules = "chunk"  # type: ignore[assignment] # the mistake


class Property(Chunked):
    """The same, as a property."""

    @property
    def depth(self) -> int:  # type: ignore[override] # the mistake
        """Two steps in flight, it says."""
        return 2


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (NoChunk, "policy NoChunk: must define budget, chunk, Settings, summary"),
        (NoCommit, "policy NoCommit: must define waiting_count, free_seats, .*, commit, state, members, check"),
        (Fixed, "policy Fixed: set prefilling in __init__, not in the class"),
        (Misspelt, "policy Misspelt: steady_rules names 'chunks', which the class does not define"),
        (OneText, "policy OneText: steady_rules = 'chunk': must be a tuple of names of methods"),
        (Property, "policy Property: set depth in __init__, not in the class"),
    ],
)
def test_a_class_that_could_not_work_is_refused_when_it_is_registered(policy: type[Policy], said: str) -> None:
    """The line says what is missing, or what would be passed over."""
    with pytest.raises(InputError, match=said):
        scheduler("of-my-own")(policy)
    assert "of-my-own" not in SCHEDULERS


@pytest.mark.parametrize(
    ("name", "policy", "said"),
    [
        ("my policy", Chunked, "scheduler 'my policy': must be letters, digits, '_' and '-', starting with"),
        ("", Chunked, "scheduler '': must be letters"),
        (Chunked, Chunked, "scheduler: <class .*Chunked'> must be a name, such as @scheduler"),
        ("mine", object, "scheduler 'mine': <class 'object'> must be a class derived from Policy"),
        ("mine", len, "scheduler 'mine': <built-in function len> must be a class derived from Policy"),
    ],
)
def test_a_scheduler_has_a_plain_name_and_is_a_policy(name: Any, policy: Any, said: str) -> None:
    """A name that no scenario could give, and an object that is no policy, are errors."""
    with pytest.raises(InputError, match=said):
        scheduler(name)(policy)


class Greedy(Chunked):
    """Gives a request one token more than it has left, or takes some away."""

    more = 1

    def chunk(self, job: Any, step: Any) -> int:
        """Be wrong by `more`."""
        return job.rest_tokens + self.more


class Miserly(Greedy):
    """The other way round."""

    more = -9


@pytest.mark.parametrize(("policy", "given"), [(Greedy, 9), (Miserly, -1)])
def test_a_chunk_must_be_part_of_the_prompt(policy: type[Chunked], given: int) -> None:
    """Too many tokens would be counted twice, fewer than none are nothing: the run fails and names the rule."""
    said = rf"{policy.__name__}.chunk gives {given} tokens to 'a': must be 0 to 8, its rest"
    with pytest.raises(RunError, match=said):
        simulate(make_policy(policy), [(0.0, 8, 2)])


class Numpy(Chunked):
    """Answers with numpy's numbers."""

    def budget(self) -> Any:
        """Return the budget as numpy has it."""
        return np.int32(super().budget())

    def chunk(self, job: Any, step: Any) -> Any:
        """Return the chunk as numpy has it."""
        return np.int64(super().chunk(job, step))

    def may_admit(self, job: Any, step: Any) -> Any:
        """Return a truth value as numpy has it."""
        return np.bool_(True)


def test_answers_can_be_numbers_of_numpy() -> None:
    """The same run as with Python's."""
    asked = [(0.0, 8, 3), (0.5, 9, 2)]
    assert seen(simulate(make_policy(Numpy), asked)) == seen(simulate(make_policy("chunked"), asked))


class Halves(Chunked):
    """Gives a part of a token."""

    def chunk(self, job: Any, step: Any) -> Any:
        """Return half of the prompt, as a float."""
        return job.rest_tokens / 2


class Boundless(Chunked):
    """Has no budget."""

    def budget(self) -> Any:
        """Forget to answer."""


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Halves, "Halves.chunk gives 4.0: must be a whole number of tokens"),
        (Boundless, "Boundless.budget gives None: must be a whole number of tokens"),
    ],
)
def test_answers_must_be_whole_numbers(policy: type[Chunked], said: str) -> None:
    """Anything else ends the run with the name of class and rule, compiled or not."""
    with pytest.raises(RunError, match=said):
        simulate(make_policy(policy), [(0.0, 8, 2)])


class NoVictim(Chunked):
    """Names a request that does not run."""

    def victim(self, step: Any) -> Any:
        """Return the head of the queue, or nothing."""
        return self.waiting.head if self.waiting else None


class ManyVictims(Chunked):
    """Names several requests at once."""

    def victim(self, step: Any) -> Any:
        """Return a list."""
        return []


@pytest.mark.parametrize(
    ("kind", "more", "shown"),
    [(NoVictim, [(2.0, 1, 1)], "NoVictim.victim gives 'c'"), (NoVictim, [], "None"), (ManyVictims, [], r"\[\]")],
)
def test_a_victim_must_run(kind: type[Chunked], more: list[tuple[float, int, int]], shown: str) -> None:
    """A victim that holds no seat ends the run with the name of class and rule."""
    policy = make_policy(kind, {"max_num_seqs": 2}, blocks=8, block_size=1)
    with pytest.raises(RunError, match=rf"{shown}: must be one of self.running without"):
        simulate(policy, [(0.0, 3, 5), (0.0, 2, 6), *more])


class OfVllm(VllmV1):
    """Names a victim that does not run."""

    def victim(self, step: Any) -> Any:
        """Return nothing."""


def test_a_victim_of_vllm_must_run_too() -> None:
    """vLLM's walk asks through the same check."""
    policy = make_policy(OfVllm, {"max_num_seqs": 2, "max_num_batched_tokens": 64}, blocks=8, block_size=1)
    with pytest.raises(RunError, match=r"OfVllm\.victim gives None: must be one of self\.running"):
        simulate(policy, [(0.0, 3, 5), (0.0, 2, 6)])


class Silent(Chunked):
    """Forgets to return an answer."""

    def may_admit(self, job: Any, step: Any) -> Any:
        """Compute something and return nothing."""


class Listed(Chunked):
    """Has a list as its queue."""

    def queue(self) -> Any:
        """Return no queue."""
        return []


class Negative(Chunked):
    """Has less than no budget."""

    def budget(self) -> int:
        """Return a negative number."""
        return -1


class Twice(Chunked):
    """Decodes twice in a step."""

    def compose(self, step: Any) -> None:
        """Put the step together with a verb too many."""
        step.decode_all()
        super().compose(step)


class Blind(Chunked):
    """Admits without a look at the queue."""

    def compose(self, step: Any) -> None:
        """Admit three requests, however many wait."""
        for _ in range(3):
            step.admit_head()


class Eager(Chunked):
    """Admits a request more than wait."""

    def compose(self, step: Any) -> None:
        """Admit all and one more."""
        step.admit_waiting()
        step.admit_head()


class Harsh(Chunked):
    """Preempts a request that it has just admitted."""

    def compose(self, step: Any) -> None:
        """Admit and preempt."""
        step.admit_waiting()
        step.preempt(next(iter(self.running)))


class Deep(Chunked):
    """Wants three steps in flight."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.depth = 3


class Timeless(Chunked):
    """Answers with a number instead of a plan."""

    def plan(self, now_s: float) -> Any:
        """Return no plan."""
        return 5


class Yesterday(Chunked):
    """Wants to be asked again in the past."""

    def plan(self, now_s: float) -> Any:
        """Return a time that is over."""
        return Later(now_s - 1)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Silent, "Silent.may_admit gives None: must be True or False"),
        (Listed, r"Listed.queue gives \[\]: must be a WaitingQueue"),
        (Negative, "Negative.budget gives -1: must be at least 0"),
        (Twice, "Twice: step.decode_all can be used only once in a step"),
        (Blind, "Blind: step.admit_head needs a waiting request and a free seat"),
        (Eager, "Eager: step.admit_head needs a waiting request and a free seat"),
        (Harsh, "Harsh: step.preempt needs a running request without prompt tokens of this step"),
        (Deep, "Deep: depth = 3: must be 1 or 2"),
        (Timeless, "Timeless.plan gives 5 at 0 s: must be a Plan, None, or Later with a later time"),
        (Yesterday, "Yesterday.plan gives .* at 0 s: must be a Plan, None, or Later with a later time"),
    ],
)
def test_wrong_answers_and_verbs_end_the_run_in_one_line(policy: type[Chunked], said: str) -> None:
    """Class, rule or verb, and what is allowed: no bare errors of Python."""
    with pytest.raises(RunError, match=said):
        simulate(make_policy(policy, {"max_num_seqs": 2}), [(0.0, 8, 3), (0.0, 4, 3), (9.0, 1, 1)])


class Never(Chunked):
    """Plans steps that run no times."""

    def plan(self, now_s: float) -> Plan | None:
        """Plan, and spoil it."""
        plan = super().plan(now_s)
        if plan is not None:
            plan.repeat = 0
        return plan


@pytest.mark.parametrize("fast", [True, False])
def test_a_plan_runs_at_least_once(fast: bool) -> None:
    """Folded and step by step the same is said."""
    with pytest.raises(RunError, match="a plan at 0 s has repeat = 0: must be at least 1"):
        simulate(make_policy(Never), [(0.0, 8, 2)], fast=fast)


class Odd(StepTime):
    """A step time that is no number after the first step."""

    def __init__(self, later_s: float) -> None:
        self.later_s = later_s

    def seconds(self, batch: Batch) -> float:
        """Return a second for a prompt, and then something else."""
        return 1.0 if batch.prefill else self.later_s


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("later_s", [float("nan"), float("inf")])
def test_steps_take_a_finite_time(later_s: float, fast: bool) -> None:
    """Not a number and infinity are refused like a step without length."""
    with pytest.raises(InputError, match=rf"a step that starts at 1 s takes {later_s:g} s: must be a finite time"):
        simulate(make_policy("chunked"), [(0.0, 8, 3)], step_time=Odd(later_s), fast=fast)


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("later_s", [0.0, 1e-20, -0.5])
def test_steps_move_the_clock(later_s: float, fast: bool) -> None:
    """A step without length, or one that is lost in rounding, ends the run: its tokens would come at one instant."""
    with pytest.raises(InputError, match="a step is too short to move the clock at 1 s"):
        simulate(make_policy("chunked"), [(0.0, 8, 3)], step_time=Odd(later_s), fast=fast)


@pytest.mark.parametrize("output_tokens", [2, 3, 100])
def test_no_step_without_length_is_priced(output_tokens: int) -> None:
    """One decode, two or many in a row: the first that takes no time is found, whatever is priced at once."""
    with pytest.raises(InputError, match="a step is too short to move the clock at 1 s"):
        simulate(make_policy("chunked"), [(0.0, 8, output_tokens), (50.0, 8, 1)], step_time=Odd(0.0))


@pytest.mark.parametrize(("seats", "requests"), [(4, 1), (1, 2)])
def test_the_head_of_the_queue_needs_a_free_seat(seats: int, requests: int) -> None:
    """No request waits though seats are free, or one waits for the only seat: the verb says so at once."""
    policy = make_policy(Eager, {"max_num_seqs": seats})
    for index in range(requests):
        policy.add(Job(Request(str(index), 0.0, 1, 1), index))
    with pytest.raises(RunError, match=r"Eager: step\.admit_head needs a waiting request and a free seat"):
        policy.plan(0.0)
    assert len(policy.running) == 1
