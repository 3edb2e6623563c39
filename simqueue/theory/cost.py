"""What one request costs a server in seconds: the closed form of the capacity law, request by request.

A sample of requests costs more or less than the workload. By their costs, a rate that was seen with the sample becomes
the rate of the workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.steptime.base import StepTime
from simqueue.theory.affine import Affine, Composition, fit, step_seconds
from simqueue.theory.backlog import Content
from simqueue.theory.capacity import composition, past_of, prompts_together
from simqueue.theory.lengths import Lengths
from simqueue.theory.limits import Capacity, Resource, Server


@dataclass(frozen=True, slots=True)
class RequestCost:
    """Seconds per request if one resource limits.

    Attributes
    ----------
    affine : Affine
        The step time.
    server : Server
    resource : str
    average_s : float
        Of the workload.
    """

    affine: Affine
    server: Server
    resource: Resource
    average_s: float

    def relative(self, prompts: NDArray[Any], outputs: NDArray[Any] | float) -> NDArray[np.float64]:
        """Return the cost of each request over that of an average one."""
        decodes = outputs - 1.0
        return np.asarray(self._seconds(prompts, 1.0, decodes, prompts * decodes + outputs * decodes / 2))

    def of_steps(self, contents: Sequence[Content]) -> NDArray[np.float64]:
        """Return what each content does of the work of average requests; what is computed again is no work."""
        table = np.array(contents, dtype=np.float64)
        steps, decodes, context = table[:, 0], table[:, 1], table[:, 2]
        return np.asarray(self._seconds(table[:, 7], table[:, 8], steps * decodes, steps * context))

    def _seconds(self, prompt: Any, prompts: Any, decodes: Any, context: Any) -> Any:
        """Return the cost of prompt tokens, whole prompts, decodes and their context, over that of a request."""
        affine, server = self.affine, self.server
        work = affine.per_decode_s * decodes + affine.per_prompt_token_s * prompt + affine.per_context_token_s * context
        if self.resource == "tokens" and server.max_num_batched_tokens is not None:
            steps = (prompt + decodes) / server.max_num_batched_tokens
        elif self.resource == "kv" and server.kv_blocks is not None:
            steps = (context + prompt) / (server.kv_blocks * server.block_size)
        else:
            steps = (prompts + decodes) / server.max_num_seqs
        return (work + affine.overhead_s * steps) / self.average_s


def request_cost(
    step: StepTime, lengths: Lengths, server: Server, closed: Capacity, resource: Resource | None = None
) -> RequestCost:
    """Return what requests cost if `resource` limits, by default what limits by the closed form."""
    at = composition(lengths, closed.steps_per_request, server)
    affine = _apart(step, lengths, server, at) if server.batching == "separate" else fit(step, at)
    unit = RequestCost(affine, server, resource or closed.binding, 1.0)
    average_s = unit._seconds(lengths.prompt, 1.0, lengths.output - 1, lengths.context)
    return replace(unit, average_s=float(average_s))


def _apart(step: StepTime, lengths: Lengths, server: Server, at: Composition) -> Affine:
    """Return the coefficients if prompts are computed in steps of their own, whose overhead is theirs."""
    prompts = prompts_together(lengths, server, 1 / at.prompts)
    tokens = prompts * lengths.new
    alone_s = step_seconds(step, Composition(0, 0, tokens, prompts, past_of(lengths, lengths.new)))
    decoding = fit(step, replace(at, prompt_tokens=0.0, prompts=0.0))
    return replace(decoding, per_prompt_token_s=alone_s / tokens)
