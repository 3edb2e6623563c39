"""The course module on continuous batching, tested: its arithmetic, claims, bench and engines, each recomputed."""
