"""What one request costs a server in seconds: the closed form of the capacity law, request by request.

A sample of requests costs more or less than the workload. By their costs, a rate that was seen with the sample becomes
the rate of the workload.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simqueue.steptime.base import StepTime
from simqueue.theory.affine import Affine, fit
from simqueue.theory.capacity import composition
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

    def relative(self, prompts: NDArray[Any], outputs: NDArray[Any]) -> NDArray[np.float64]:
        """Return the cost of each request over that of an average one."""
        context = prompts * (outputs - 1.0) + outputs * (outputs - 1.0) / 2
        return np.asarray(_seconds(self.affine, self.server, self.resource, prompts, outputs, context) / self.average_s)


def request_cost(
    step: StepTime, lengths: Lengths, server: Server, closed: Capacity, resource: Resource | None = None
) -> RequestCost:
    """Return what requests cost if `resource` limits, by default what limits by the closed form."""
    affine = fit(step, composition(lengths, closed.steps_per_request, server))
    limit = resource or closed.binding
    average_s = _seconds(affine, server, limit, lengths.prompt, lengths.output, lengths.context)
    return RequestCost(affine, server, limit, float(average_s))


def _seconds(affine: Affine, server: Server, resource: Resource, prompt: Any, output: Any, context: Any) -> Any:
    work = (
        affine.per_decode_s * (output - 1) + affine.per_prompt_token_s * prompt + affine.per_context_token_s * context
    )
    return work + affine.overhead_s * _steps(server, resource, prompt, output, context)


def _steps(server: Server, resource: Resource, prompt: Any, output: Any, context: Any) -> Any:
    """Return the steps that a request requires of the resource."""
    if resource == "tokens" and server.max_num_batched_tokens is not None:
        return (prompt + output - 1) / server.max_num_batched_tokens
    if resource == "kv" and server.kv_blocks is not None:
        return (context + prompt) / (server.kv_blocks * server.block_size)
    return output / server.max_num_seqs
