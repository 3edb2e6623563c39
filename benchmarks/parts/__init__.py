"""The parts of a simulation, one by one: ``python -m pytest benchmarks/parts --benchmark-only``."""
