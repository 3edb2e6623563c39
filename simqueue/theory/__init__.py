"""Queueing theory, usable without a simulation: closed forms, exact chains, and the capacity law.

Every function names its parameters with units, says where it is valid, and refuses what lies outside. The modules:

- `single_server`: M/M/1, M/D/1, M/G/1; Kingman's bound and the approximation
- `disciplines`: priorities, shortest job first, SRPT, foreground-background, processor sharing
- `many_servers`: Erlang B and C, M/M/c, M/M/1/K
- `renewal`: GI/M/1 for gamma and constant gaps
- `bulk`: batches and steps, exponential or of known duration
- `sharing`: continuous batching as generalised processor sharing
- `tails`: decay rates and heavy tails
- `capacity`, `operating_point`: what an LLM server can carry, and its latencies below that
"""
