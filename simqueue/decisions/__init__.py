"""Decisions: capacity under limits on latency, the cheapest system that meets them, and which inputs move an answer."""
