"""Hostile files: bad contents for each kind of file that a scenario or a command can name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .case import GOOD, Case, Content, good, validated


def _sparse(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(1 << 36)


def _zeros(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(40_000_000)


def _link(target: str) -> Callable[[Path], None]:
    return lambda file: file.symlink_to(target)


CONTENTS: Mapping[str, Content] = {
    "a FIFO": os.mkfifo,
    "a folder": Path.mkdir,
    "/dev/zero": _link("/dev/zero"),
    "/dev/urandom": _link("/dev/urandom"),
    "/dev/null": _link("/dev/null"),
    "a link to itself": lambda file: file.symlink_to(file.name),
    "a link to nothing": _link("nowhere"),
    "64 GB of nothing": _sparse,
    "40 MB of zeros": _zeros,
    "empty": b"",
    "blanks": b"\n\n\n",
    "UTF-16": "a,b\n1,2\n".encode("utf-16"),
    "all bytes": bytes(range(256)) * 4,
    "a PNG": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "100,000 brackets": b"[" * 100_000,
    "100,000 objects": b'{"a":' * 100_000,
    "900 lists": b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}",
    "a word": b"word",
    "100,000 columns": b",".join(b"c%d" % i for i in range(100_000)) + b"\n1\n",
    "the same column 900 times": b",".join([b"c"] * 900) + b"\n1\n",
    "escape codes": b"\x1b[31mred\x1b[0m,b\n1,2\n",
    "a long column": b"x" * 200_000 + b",b\n1,2\n",
    "an open quote": b'"a,b\n1,2\n' * 10,
    "a number of 5,000 digits": b'{"a": ' + b"9" * 5000 + b"}",
}

_TRACES = ("azure", "burstgpt", "mooncake", "csv", "jsonl", "vllm-bench")
_WORKLOAD = GOOD["workload"]
_LENGTHS = {key: _WORKLOAD[key] for key in ("prompt_tokens", "output_tokens")}
_CURVE = {"process": "curve", "path": "f.csv", "category": "a"}

NAMING: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "model": ("f.json", {"model": "f.json"}),
    "folder of a model": ("m/config.json", {"model": "m"}),
    "gpu": ("f.yaml", {"gpu": "f.yaml"}),
    "preset": ("f.yaml", {"step_time": {"kind": "roofline", "preset": "f.yaml"}}),
    "table of steps": ("f.csv", {"step_time": {"kind": "table", "path": "f.csv"}}),
    "lengths": ("f.csv", {"workload": {**_WORKLOAD, "prompt_tokens": {"distribution": "file", "path": "f.csv"}}}),
    "curve": ("f.csv", {"workload": {**_LENGTHS, "num_requests": 5, "arrivals": _CURVE}}),
    **{f"{name} trace": ("f.trace", {"workload": {"trace": {"format": name, "path": "f.trace"}}}) for name in _TRACES},
}
"""Kind -> name of the file, and the keys of a scenario that name it."""


_LARGE = ("40 MB of zeros", "900 lists", "a long column", "100,000 objects")
"""Contents that take a part of a second: not in every kind of file."""


def files() -> Iterator[Case]:
    """Yield every kind of file with every bad content."""
    for what, content in CONTENTS.items():
        yield Case(f"scenario file: {what}", ("validate", "{}/s.yaml"), {"s.yaml": content})
        for kind, (name, changes) in NAMING.items():
            if what in _LARGE and kind not in ("model", "gpu", "lengths", "jsonl trace", "vllm-bench trace"):
                continue
            yield validated(f"{kind}: {what}", good(**changes), {name: content})
        for kind in ("steps", "served", "requests", "linear"):
            flags = ("--kind", kind, "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--out", "{}/o.yaml")
            yield Case(f"calibrate {kind}: {what}", ("calibrate", "{}/t.csv", *flags), {"t.csv": content})
