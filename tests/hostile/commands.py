"""Hostile command lines."""

from __future__ import annotations

from collections.abc import Iterator

from .case import Case, good

_SCENARIO = {"s.yaml": good().encode()}
_WORDS = {
    "a NUL": "a\0b",
    "an escape code": "\x1b[31mred",
    "two lines": "a\nerror: b",
    "300 letters": "x" * 300,
    "100,000 letters": "x" * 100_000,
    "a surrogate": "a\udcffb",
    "a path of many folders": "a/" * 3000,
    "digits": "9" * 5000,
    "nothing": "",
}


def command_lines() -> Iterator[Case]:
    """Yield commands with words that they cannot have."""
    for name, word in _WORDS.items():
        for command in ("run", "validate"):
            yield Case(f"{command} {name}", (command, word))
        for flag in ("--seed", "--replications", "--workers", "--dask"):
            yield Case(f"run {flag} {name}", ("run", "{}/s.yaml", "--no-figures", flag, word), _SCENARIO)
        for text in (word, f"{word}=1", f"seed={word}", f"workload.{word}=1", f"policies.c.{word}=1", f"gpu={word}"):
            label = text.replace(word, name) if word else f"{text} {name}"
            yield Case(f"--set {label}", ("validate", "{}/s.yaml", "--set", text), _SCENARIO)
        yield Case(f"explain model {name}", ("explain", "--model", word, "--gpu", "h100-sxm", "--decode", "1"))
        yield Case(f"explain gpu {name}", ("explain", "--model", "llama-3.1-8b", "--gpu", word, "--decode", "1"))
    for value in ("0", "-1", "1.5", "x"):
        yield Case(f"--replications {value}", ("run", "{}/s.yaml", "--replications", value), _SCENARIO)
        yield Case(f"--workers {value}", ("run", "{}/s.yaml", "--workers", value), _SCENARIO)
    for depth in (100, 5000):
        path = ".".join(["a"] * depth)
        yield Case(f"--set of {depth} keys", ("validate", "{}/s.yaml", "--set", f"{path}=1"), _SCENARIO)
        value = "[" * depth + "]" * depth
        yield Case(f"--set to {depth} lists", ("validate", "{}/s.yaml", "--set", f"seed={value}"), _SCENARIO)
    flags = [part for i in range(500) for part in ("--set", f"k{i}=1")]
    yield Case("500 flags for unknown keys", ("validate", "{}/s.yaml", *flags), _SCENARIO)
