"""The contract of step-time models: how long one forward pass takes, from sums over its batch.

A model never sees requests. It is given a `Batch`, whose cost-relevant facts are sums, so that the price of
asking does not grow with the batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Batch(NamedTuple):
    """What one step runs, as sums.

    Attributes
    ----------
    decode_seqs : int
        Requests that decode in this step.
    decode_tokens : int
        Tokens they feed (equal to `decode_seqs` without speculation).
    context_tokens : int
        Tokens that all decodes together attend to in this step, each one's fed token included.
    prefill : tuple of (past, new)
        One pair per prompt piece: tokens already in the cache, tokens computed now. Padded engines list padded pieces.
    sampled_rows : int
        Rows for which the output head runs: every decode and every prompt that is completed.
    """

    decode_seqs: int = 0
    decode_tokens: int = 0
    context_tokens: int = 0
    prefill: tuple[tuple[int, int], ...] = ()
    sampled_rows: int = 0

    @property
    def prefill_tokens(self) -> int:
        """Prompt tokens computed in this step."""
        tokens = 0
        for _, new in self.prefill:
            tokens += new
        return tokens

    def later(self, steps: int) -> Batch:
        """Return the same composition `steps` repeats on: every decode attends to one token more per step."""
        return Batch(
            self.decode_seqs,
            self.decode_tokens,
            self.context_tokens + steps * self.decode_seqs,
            self.prefill,
            self.sampled_rows,
        )


@mypyc_attr(allow_interpreted_subclasses=True)
class StepTime:
    """How long steps take. Implementations are immutable and know nothing of time, requests or queues."""

    @abstractmethod
    def seconds(self, batch: Batch) -> float:
        """Return how long one step with this batch takes, in seconds (> 0, finite)."""
        raise NotImplementedError

    def durations(self, batch: Batch, n: int) -> Sequence[float]:
        """Return the durations of `n` steps in a row with this composition, contexts growing by one token.

        Postcondition: the i-th value (from 0) is bit-identical to ``seconds(batch.later(i))``. The default asks
        one by one; models override it where one pass over the sums is faster.
        """
        return [self.seconds(batch.later(i)) for i in range(n)]

    def shortest_s(self) -> float:
        """Return a time that no step falls below: one decode of one token, or one token of a prompt."""
        decode = Batch(decode_seqs=1, decode_tokens=1, context_tokens=1, sampled_rows=1)
        return min(self.seconds(decode), self.seconds(Batch(prefill=((0, 1),))))

    def warnings(self, steps: Mapping[str, NDArray[Any]]) -> list[str]:
        """Return one line for each way in which a run left the range that the model's values hold in.

        Parameters
        ----------
        steps : mapping of str to array, each of length n_rows
            ``decode_seqs``, ``context_tokens``, ``prefill_tokens``, ``repeat``: the steps of a run as it recorded them.
        """
        return []

    def ends(self, start_s: float, batch: Batch, n: int) -> list[float]:
        """Return when each of `n` steps in a row ends, summed one by one from `start_s`."""
        if n == 1:
            return [start_s + self.seconds(batch)]
        durations = list(self.durations(batch, n))
        durations[0] += start_s
        return list(accumulate(durations))
