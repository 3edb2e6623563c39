"""Speed and memory of the simulation on the machine at hand; ``python -m benchmarks --help``."""
