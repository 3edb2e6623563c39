"""Queueing theory, usable without a simulation: closed forms, exact Markov chains, and the capacity law.

Every function documents its parameters with units and its valid range, and raises `InputError` outside it. Modules:

- `single_server`: M/M/1, M/D/1, M/G/1; Kingman's bound and approximation
- `disciplines`: priorities, shortest job first, SRPT, foreground-background, processor sharing
- `many_servers`: Erlang B and C, M/M/c, M/M/1/K
- `renewal`: GI/M/1 for gamma and constant gaps
- `bulk`: service in batches and steps of exponential or known duration
- `sharing`: continuous batching as generalised processor sharing
- `tails`: decay rates and heavy tails of waits
- `capacity`, `operating_point`: the capacity of an LLM server, and its latencies below capacity
"""
