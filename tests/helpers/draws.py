"""What random small scenarios are drawn from.

These strategies are built once: building one with alternatives costs more than drawing from it.
"""

from __future__ import annotations

from hypothesis import strategies as st

from .exact_times import TICK_S

PAUSES = st.sampled_from([0, 0, 0, 1, 1, 2, 5, 20])
"""Ticks between arrivals: many arrive at one instant."""
PROMPTS = st.sampled_from([*range(1, 7)] * 6 + [*range(1, 41)])
OUTPUTS = st.sampled_from([*range(1, 5)] * 7 + [*range(4, 31)])
"""Tokens of a request: half of the time so few that many tie."""
SEATS = st.sampled_from([1, 2, 3, 4, 6, 8])
SPARE_TOKENS = st.sampled_from([*range(13)] * 5 + [*range(12, 73)])
"""What a step may have beyond a token for each seat."""
BLOCK_SIZES = st.sampled_from([1, 2, 3, 4, 16])
SPARE_BLOCKS = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 8, 40])
"""What the pool has beyond the largest request."""
SHIFTS_S = st.sampled_from([0.0, 0.0, TICK_S / 2])
"""Off the grid of steps, or on it."""
HORIZONS_S = st.sampled_from([float("inf")] * 120 + [ticks * TICK_S for ticks in range(1, 121)])
OFTEN = st.sampled_from([True, True, False])
USUALLY = st.sampled_from([True, True, True, True, False])
