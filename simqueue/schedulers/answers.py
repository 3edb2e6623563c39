"""Answers of a policy's rules, checked once and in one place, so that errors name the class and the rule.

The checks also keep it invisible whether the engine is compiled: numpy's integers count as integers, and a wrong type
is the same error in both cases.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

from simqueue.errors import RunError
from simqueue.request import Job
from simqueue.schedulers.waiting import WaitingQueue

if TYPE_CHECKING:
    from simqueue.schedulers.iteration import IterationPolicy
    from simqueue.schedulers.step import Step


def budget_of(policy: IterationPolicy) -> int:
    """Return the policy's `budget`.

    Raises
    ------
    RunError
        If it is not a whole number, or negative.
    """
    budget = _whole_number(policy, "budget", policy.budget())
    if budget < 0:
        raise RunError(f"{type(policy).__name__}.budget gives {budget}: must be at least 0")
    return budget


def chunk_of(policy: IterationPolicy, job: Job, step: Step) -> int:
    """Return the policy's `chunk` for `job`.

    Raises
    ------
    RunError
        If it is not a whole number, not part of what is left to compute, or more than is left of the budget.
    """
    rest = job.known_tokens - job.computed_tokens
    new = _whole_number(policy, "chunk", policy.chunk(job, step))
    if not 0 <= new <= rest:
        raise _wrong_chunk(policy, job, new, f"{rest}, its rest")
    if new > step.budget and not (policy.runs_long_prompts_alone and new == rest and step.is_empty):
        raise _wrong_chunk(policy, job, new, f"{step.budget}, what is left of the budget of the step")
    return new


def _wrong_chunk(policy: IterationPolicy, job: Job, new: int, most: str) -> RunError:
    given = f"{type(policy).__name__}.chunk gives {new} tokens to '{job.request.request_id}'"
    return RunError(f"{given}: must be 0 to {most}")


def victim_of(policy: IterationPolicy, step: Step) -> Job:
    """Return the policy's `victim`.

    Raises
    ------
    RunError
        If it holds no seat, or was given prompt tokens in this step.
    """
    rules: Any = policy  # untyped, so that a wrong type of the answer is found here and not by the compiled call
    victim = rules.victim(step)
    if not isinstance(victim, Job) or victim not in policy.running or step.has_served(victim):
        shown = f"'{victim.request.request_id}'" if isinstance(victim, Job) else repr(victim)
        given = f"{type(policy).__name__}.victim gives {shown}"
        raise RunError(f"{given}: must be one of self.running without prompt tokens of this step")
    chosen: Job = victim
    return chosen


def may_admit(policy: IterationPolicy, job: Job, step: Step) -> bool:
    """Return the policy's `may_admit` for `job`.

    Raises
    ------
    RunError
        If it is not a truth value.
    """
    answer: object = policy.may_admit(job, step)
    if answer is True or answer is False:
        return answer
    if type(answer).__name__ not in ("bool", "bool_"):  # the second is numpy's
        raise RunError(f"{type(policy).__name__}.may_admit gives {answer!r}: must be True or False")
    return bool(answer)


def queue_of(policy: IterationPolicy) -> WaitingQueue:
    """Return the policy's `queue`.

    Raises
    ------
    RunError
        If it is not a waiting queue.
    """
    rules: Any = policy
    queue = rules.queue()
    if not isinstance(queue, WaitingQueue):
        raise RunError(f"{type(policy).__name__}.queue gives {queue!r}: must be a WaitingQueue")
    found: WaitingQueue = queue
    return found


def misuse(policy: IterationPolicy, verb: str, must: str) -> RunError:
    """Return the error about a verb of a step whose precondition does not hold."""
    return RunError(f"{type(policy).__name__}: {verb} {must}")


def _whole_number(policy: IterationPolicy, rule: str, answer: object) -> int:
    if type(answer) is int:
        return answer
    try:
        return index(answer)  # type: ignore[arg-type]  # the except is for what is not a number
    except TypeError:
        given = f"{type(policy).__name__}.{rule} gives {answer!r}"
        raise RunError(f"{given}: must be a whole number of tokens") from None
