"""The terms of tables and figures in one sentence each, for pages and for docs/reference/metrics.md."""

from __future__ import annotations

from typing import Final

GLOSSARY: Final[dict[str, str]] = {
    "TTFT": "Time to first token: from when the client sends the request until it sees the first token.",
    "TPOT": "Time per output token: the time from the first to the last token of a request, divided by the number of "
    "tokens after the first. One value per request.",
    "ITL": "Inter-token latency: the time between two consecutive tokens of a request, one value per pair of tokens.",
    "E2EL": "End-to-end latency: from when the client sends the request until it sees the last token.",
    "client wait": "The time before a request is sent, for a free connection or after a timeout; no part of TTFT.",
    "wait +": "A latency from when the client first wanted the request, client wait included.",
    "good requests": "The share of requests that finish within all limits of a request.",
    "p50, p95, p99": "Percentiles: 50, 95 or 99 % of the values are at or below it.",
    "SLO": "Service level objective: an upper limit of a latency.",
    "completed": "Requests that got all their tokens.",
    "rejected": "Requests that were refused when they arrived.",
    "timed out": "Requests whose client gave up.",
    "unfinished": "Requests in the system at the end of the run.",
    "throughput": "Measured requests per second.",
    "output": "Tokens made per second.",
    "goodput": "Requests per second that finish within all their SLOs.",
    "preemptions": "How often a running request lost its memory and had to start again.",
    "KV": "Key-value cache: the memory for the tokens of running requests, in blocks of some tokens.",
    "KV peak": "The largest part of the KV blocks that was in use.",
    "max request": "The longest request that the policy accepts, prompt and output together.",
    "prefix hits": "The share of looked-up prompt tokens that were found in the prefix cache.",
    "GPU busy": "The share of the run in which the GPU computed.",
    "load": "The arrival rate divided by the highest rate that the policy can sustain. From 1 on, the queue grows, "
    "unless something bounds it.",
    "limited by": "What limits the highest rate: slots (running requests), tokens (the token budget of a step), "
    "kv (memory), compute (the time of the steps) or the front end.",
    "overloaded": "Whether more work comes than can be done: the queue grows as long as the run lasts, and latencies "
    "depend on its length, unless it is bounded.",
    "bounded": "Whether timeouts or a full queue keep the queue from growing, so that there is a steady state.",
    "time overloaded": "The share of the time in which more requests arrive than can be served.",
    "model error": "How far the step times are from measurements that they were not fitted to: the median for tokens.",
    "warm-up": "The first part of a run, whose requests are simulated but not measured.",
    "replication": "One of several runs with different random numbers.",
    "policy": "A scheduler with its settings; a column of the table.",
    "slot": "A place for a running request.",
    "prefill": "The computation of the prompt, which ends with the first token.",
    "decode": "The computation of one further token.",
    "step": "One pass of the model over a batch of prompts and decoding requests.",
}
"""Of every result."""

FLEET_GLOSSARY: Final[dict[str, str]] = {
    "replicas": "Engines behind the router, with those that start later. KV, pool and GPU are of all of them together.",
    "imbalance": "The largest value of a replica over the mean of all: of its busy share (load) or its KV peak (KV). "
    "1 is perfect balance.",
    "router": "The time from when the client sends the request until the router has chosen a replica.",
    "resent": "How often requests were sent again after their replica had failed.",
    "lost": "Requests that were rejected after their replica had failed.",
    "discarded": "Output tokens that a failed replica had made, and another one made again.",
}
"""Of results with a fleet."""
