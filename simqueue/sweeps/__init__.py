"""Sweeps: designs over keys of a scenario, and the store of their cells."""
