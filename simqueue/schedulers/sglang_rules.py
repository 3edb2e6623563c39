"""What differs between versions of SGLang's scheduler and is no flag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from simqueue.steptime.base import made_again


@dataclass(frozen=True, slots=True)
class SglangRules:
    """Rules of one version.

    Attributes
    ----------
    gate : {"whole", "rest", "page"}
        What must fit for an admission, besides the context to compute. whole: all that the request may ever make,
        tested before and after its prefix is held; rest: what it may still make; page: that, and a page for every
        request, tested while its prefix is held.
    fixed_reserve : bool
        Whether requests that ignore the end-of-sequence token reserve all that they may still make, whatever the ratio.
    spent_stops : bool
        Whether a step whose budget is used up looks at no waiting request.
    full_only_if_served : bool
        Whether a lack of tokens closes the door only if requests run or were admitted.
    empty_opens : bool
        Whether an empty batch opens the door again.
    merges_finished : bool
        Whether requests that finished with their prefill join the batch until its next decode step.
    filters_first : bool
        Whether finished requests leave the batch before a prefill is tried.
    rows : {"batch", "free", "held"}
        What limits the number of requests. batch: the batch; free: all that hold a row of the engine's table; held: the
        same, but the row of the request whose context is computed in part can be used for it again.
    ratio_resets : {"no_batch", "idle"}
        When new_token_ratio begins again: in a turn without a batch, or only if nothing waits either.
    retracts : {"twenty", "next"}
        Until when requests are retracted: until 20 tokens for each one left are free, or until the next step fits.
    ratio_plus_one : bool
        Whether the ratio after a retraction divides by one token more.
    puts : {"known", "prefilled", "stored"}
        What a finished request puts into the tree: all known tokens but the last, only those of its last prefill, or
        all that are in the cache.
    skips_finishing : bool
        Whether a request whose last token by length is under way is left out of the next step.
    mixes_if_fits : bool
        Whether decodes sit out a mixed step in which they do not fit.
    refreshes_waiting : bool
        Whether prefixes of waiting requests are touched now and then, if the order does not look at the tree.
    matches_all : bool
        Whether the order looks for all tokens of a request, not for all but the last, and admission looks again.
    in_batch_prefixes : bool
        Whether of several waiting requests with one prefix that is not cached only the first is urgent.
    clips_to_pool : bool
        Whether answers are also limited by what the pool holds beside the prompt.
    cuts_prompts : bool
        Whether a prompt that is too long is cut; if not, its request is rejected.
    requeues_preempted : bool
        Whether preempted requests wait again if the request they made room for was not admitted.
    """

    gate: Literal["whole", "rest", "page"] = "page"
    fixed_reserve: bool = True
    spent_stops: bool = True
    full_only_if_served: bool = True
    empty_opens: bool = True
    merges_finished: bool = False
    filters_first: bool = True
    rows: Literal["batch", "free", "held"] = "held"
    ratio_resets: Literal["no_batch", "idle"] = "idle"
    retracts: Literal["twenty", "next"] = "next"
    ratio_plus_one: bool = True
    puts: Literal["known", "prefilled", "stored"] = "stored"
    skips_finishing: bool = True
    mixes_if_fits: bool = True
    refreshes_waiting: bool = True
    matches_all: bool = True
    in_batch_prefixes: bool = True
    clips_to_pool: bool = True
    cuts_prompts: bool = False
    requeues_preempted: bool = True

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return made_again(self)
