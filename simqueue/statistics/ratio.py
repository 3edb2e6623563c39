"""The ratio of two means over paired replications, with an interval that holds for skewed values too."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from simqueue.statistics.estimate import reach
from simqueue.statistics.intervals import CONFIDENCE, Interval, check_confidence
from simqueue.statistics.moments import skewness, standard_error


def ratio_of_means(
    values: Sequence[float], baseline: Sequence[float], confidence: float = CONFIDENCE
) -> Interval | None:
    """Return the ratio of two means whose values come in pairs; None unless all values are >= 0 and both means > 0.

    There is no interval with fewer than two replications, and if leaving out one replication leaves a mean of zero.

    The logarithm of the ratio is smooth in both means, so the jackknife gives its standard error and its skewness
    without a model of how the two depend on each other. The interval is that of `estimate`, but two means are
    estimated, hence n - 2 degrees of freedom.

    Parameters
    ----------
    values, baseline : sequences of float
        One value per replication, in the same order of replications.
    confidence : float
        Nominal coverage.
    """
    check_confidence(confidence)
    above, below = np.asarray(values, float), np.asarray(baseline, float)
    if min(above.min(), below.min()) < 0 or not above.sum() > 0 or not below.sum() > 0:
        return None
    ratio = float(above.mean() / below.mean())
    n = len(above)
    rests = (above.sum() - above, below.sum() - below)
    if n < 2 or not min(rest.min() for rest in rests) > 0:
        return Interval(ratio, None, None)
    pseudo = (n * math.log(ratio) - (n - 1) * np.log(rests[0] / rests[1])).tolist()
    error = standard_error(pseudo)
    t = float(scipy.special.stdtrit(max(1, n - 2), (1 + confidence) / 2))
    down, up = reach(t, skewness(pseudo), n)
    return Interval(ratio, ratio * math.exp(-error * down), ratio * math.exp(error * up))
