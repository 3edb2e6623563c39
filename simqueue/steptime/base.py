"""The contract of step-time models: the duration of one forward pass, from sums over its batch.

A model never sees requests. Its input is a `Batch` of sums, so that the cost of a call does not grow with the batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Batch(NamedTuple):
    """The work of one step, as sums.

    Attributes
    ----------
    decode_seqs : int
        Decoding requests.
    decode_tokens : int
        Tokens that they feed (equal to `decode_seqs` without speculation).
    context_tokens : int
        Tokens that the decodes attend to, fed tokens included, summed over all decodes.
    prefill : tuple of (past, new)
        One pair per prompt chunk: tokens already in the cache, and tokens computed now. With padding, padded chunks.
    sampled_rows : int
        Rows for which the output head is computed: one per decode and per completed prompt.
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
        """Return the same composition after `steps` repeats: each decode attends to one more token per step."""
        return Batch(
            self.decode_seqs,
            self.decode_tokens,
            self.context_tokens + steps * self.decode_seqs,
            self.prefill,
            self.sampled_rows,
        )


def made_again(record: Any) -> tuple[type, tuple[Any, ...]]:
    """Return how to make a frozen record again: it cannot be filled in after it was made (pickle, copy)."""
    return type(record), tuple([getattr(record, field.name) for field in fields(record)])


@mypyc_attr(allow_interpreted_subclasses=True)
class StepTime:
    """The duration of steps. Implementations are immutable and know nothing of time, requests or queues."""

    @abstractmethod
    def seconds(self, batch: Batch) -> float:
        """Return the duration of one step with this batch, in seconds (> 0, finite)."""
        raise NotImplementedError

    def durations(self, batch: Batch, n: int) -> Sequence[float]:
        """Return the durations of `n` consecutive steps with this composition, in seconds.

        Contexts grow by one token per decode and step. Postcondition: the i-th value (from 0) is bit-identical to
        ``seconds(batch.later(i))``. Models override this method if one pass over the sums is faster.
        """
        return [self.seconds(batch.later(i)) for i in range(n)]

    def shortest_s(self) -> float:
        """Return a lower bound of all durations in seconds: one decode with one token, or one prompt token."""
        decode = Batch(decode_seqs=1, decode_tokens=1, context_tokens=1, sampled_rows=1)
        return min(self.seconds(decode), self.seconds(Batch(prefill=((0, 1),))))

    def warnings(self, steps: Mapping[str, NDArray[Any]]) -> list[str]:
        """Return one line for each quantity that left the valid range of the model during a run.

        Parameters
        ----------
        steps : mapping of str to array, each of length n_rows
            ``decode_seqs``, ``context_tokens``, ``prefill_tokens``, ``repeat``: the recorded steps of the run.
        """
        return []

    def ends(self, start_s: float, batch: Batch, n: int) -> list[float]:
        """Return the end of each of `n` consecutive steps in seconds, summed one by one from `start_s`."""
        if n == 1:
            return [start_s + self.seconds(batch)]
        durations = list(self.durations(batch, n))
        durations[0] += start_s
        return list(accumulate(durations))
