"""The parts of a simulation by themselves: ``python -m pytest benchmarks/parts --benchmark-only``."""
