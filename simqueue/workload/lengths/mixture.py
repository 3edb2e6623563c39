"""A mixture of length distributions: several kinds of requests in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simqueue.workload.lengths.base import Floats, LengthDistribution, Tokens


@dataclass(frozen=True, slots=True, eq=False)
class MixtureLength(LengthDistribution):
    """Each length comes from one of several distributions.

    Attributes
    ----------
    parts : sequence of LengthDistribution, length n
    shares : float64 array, shape (n,)
        Probability of each part; they sum to 1.
    """

    parts: Sequence[LengthDistribution]
    shares: Floats

    def of_uniforms(self, uniforms: Floats) -> Tokens:
        """Return one length for each uniform number: the number selects the part, and its remainder the length.

        The length falls where the next part begins, so it does not increase monotonically with the uniform number.
        """
        ends = np.cumsum(self.shares)
        chosen = np.minimum(np.searchsorted(ends, uniforms, side="right"), len(ends) - 1)
        tokens = np.empty(len(uniforms), dtype=np.int64)
        for number, (part, share, end) in enumerate(zip(self.parts, self.shares, ends, strict=True)):
            mine = chosen == number
            rest = (uniforms[mine] - (end - share)) / share
            tokens[mine] = part.of_uniforms(np.clip(rest, 0.0, np.nextafter(1.0, 0.0)))
        return tokens

    @property
    def is_random(self) -> bool:
        """Whether two lengths can differ: within a part or between two."""
        return any(part.is_random for part in self.parts) or len({part.mean() for part in self.parts}) > 1

    def mean(self) -> float:
        """Return the mean of the mixture."""
        return float(self.shares @ [part.mean() for part in self.parts])

    def variance(self) -> float:
        """Return the variance of the mixture: within the parts and between them."""
        means = np.array([part.mean() for part in self.parts])
        within = np.array([part.variance() for part in self.parts])
        return float(self.shares @ (within + (means - self.mean()) ** 2))
