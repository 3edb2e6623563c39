"""Bounds that only slips of the pen exceed."""

MOST_TOKENS = 1_000_000_000
"""The largest token count of one request."""

MOST_REQUESTS = 100_000_000
"""The largest number of requests in one workload; more would not fit in memory."""

LONGEST_S = 1e15
"""The latest arrival in seconds; later times could not resolve a step any more."""
