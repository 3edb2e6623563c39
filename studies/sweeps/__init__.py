"""Sweeps that are killed and disturbed: nothing lost, nothing twice, nothing torn."""
