"""Hostile scenarios: whole files, names, and values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .case import GOOD, Case, good, validated


def scenarios() -> Iterator[Case]:
    """Yield scenarios that are wrong as files, by their names, or by their size."""
    lines = "\n".join(f"{key}: {json.dumps(value)}" for key, value in GOOD.items()) + "\n"
    for name, text in _TOP_LEVEL.items():
        yield validated(f"scenario: {name}", text + lines)
    for name, content in _WHOLE.items():
        yield validated(f"scenario: {name}", content)
    chunked = GOOD["policies"]["c"]
    for name, key in _NAMES.items():
        yield validated(f"policy named {name}", good(policies={key: chunked}))
        yield validated(f"workload named {name}", good(workload=None, workloads={key: GOOD["workload"]}))
        yield validated(f"key named {name}", good(**{key: 1}))
    yield validated("20,000 policies", good(policies={f"p{i}": chunked for i in range(20_000)}))
    yield validated("1,001 policies in one line", lines + json.dumps({f"p{i}": chunked for i in range(1001)}))
    requests = [{"arrival_s": "x", "prompt_tokens": 0, "output_tokens": 0.5}] * 500
    yield validated("500 requests with three mistakes each", good(workload={"requests": requests}))
    yield validated("20,000 requests", good(workload={"requests": [{"arrival_s": 0.5}] * 20_000}))
    turns = {"sessions": {"arrivals": GOOD["workload"]["arrivals"], "num_sessions": 1, "turns": _constant(1_000_000)}}
    lengths = {key: GOOD["workload"][key] for key in ("prompt_tokens", "output_tokens")}
    yield validated("a conversation of a million turns", good(workload={**turns, **lengths}))
    for ranks in (10**7, 10**12):
        zipf = {"distribution": "zipf", "exponent": 1.1, "ranks": ranks}
        yield validated(f"zipf of {ranks}", good(workload={**GOOD["workload"], "prompt_tokens": zipf}))
    for key in ("max_num_batched_tokens", "n_batch"):
        scheduler = "llamacpp" if key == "n_batch" else "chunked"
        yield validated(f"{key} of 10^12", good(policies={"c": {"scheduler": scheduler, key: 10**12}}))
    for name, fleet in _FLEETS.items():
        yield validated(f"fleet: {name}", good(fleet=fleet))
    mixed: Any = _constant(10)
    for _ in range(40):
        mixed = {"distribution": "mixture", "components": [{"weight": 1, "of": mixed}]}
    yield validated("a mixture of mixtures", good(workload={**GOOD["workload"], "prompt_tokens": mixed}))


def _constant(value: int) -> dict[str, Any]:
    return {"distribution": "constant", "value": value}


def _bomb(levels: int, width: int) -> str:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, levels)]
    return "\n".join(lines) + "\n"


def _merge_bomb(levels: int) -> str:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}, *a{i - 1}], k{i}: 1}}" for i in range(1, levels)]
    return "\n".join(lines) + "\n"


_FLEETS: Mapping[str, Any] = {
    "10^12 replicas": {"replicas": 10**12},
    "a thousand groups of 10,000 replicas": {"groups": {f"g{i}": {"replicas": 10_000} for i in range(1_000)}},
    "900 groups with two unknown keys": {"groups": {f"g{i}": {"blub": 1, "max_num_seq": 2} for i in range(900)}},
    "900 unknown keys of a group": {"groups": {"g": {f"max_num_sqes{i}": 1 for i in range(900)}}},
    "9,000 unknown names in an order": {"replicas": 10_000, "router_order": [f"replika-{i}" for i in range(9_000)]},
    "900 events of unknown replicas": {
        "replicas": 10_000,
        "events": [{"at_s": 1, "replica": f"replika-{i}", "event": "fail"} for i in range(900)],
    },
    "900 failures of one replica": {
        "replicas": 1,
        "events": [{"at_s": 1, "replica": "replica-0", "event": "fail"}] * 900,
    },
}

_TOP_LEVEL: Mapping[str, str] = {
    "alias bomb of 9 levels": _bomb(9, 9),
    "alias bomb of 60 levels": _bomb(60, 2),
    "merge bomb": _merge_bomb(30),
    "an alias of itself": "x: &x [*x]\n",
    "an alias of itself in a key": "x: &x {a: {b: *x}}\n",
    "two that contain each other": "x: &x {y: &y {a: *x, b: *y}}\n",
    "a merge key of itself": "x: &x {<<: *x}\n",
    "a merge key of a number": "x: {<<: 3}\n",
    "a merge key of a list of numbers": "x: {<<: [1, 2]}\n",
    "an unknown alias": "x: *nothing\n",
    "20,000 unknown keys": "".join(f"k{i}: 1\n" for i in range(20_000)),
    "2,000 unknown keys": "".join(f"k{i}: 1\n" for i in range(2_000)),
    "900 unknown keys": "".join(f"workloat{i}: 1\n" for i in range(900)),
    "900 wrong keys inside": "kv_cache: {" + ", ".join(f"blokcs{i}: 1" for i in range(900)) + "}\n",
    "a key of a million letters": f"{'k' * 1000}: 1\n",
    "a list of 10 MB": f"x: [{','.join(['1'] * 5_000_000)}]\n",
    "a list of 5,000": f"x: [{','.join(['1'] * 5_000)}]\n",
    "a text of 10 MB": f"x: {'y' * 10_000_000}\n",
    "a comment of 10 MB": f"# {'y' * 10_000_000}\n",
    "words of 900 kB": f"x: {'y ' * 450_000}\n",
    "60 levels": f"x: {'[' * 60}{']' * 60}\n",
    "900 levels": f"x: {'[' * 900}{']' * 900}\n",
    "900 levels of mappings": f"x: {'{a: ' * 900}{'}' * 900}\n",
    "100,000 levels": f"x: {'[' * 100_000}\n",
    "100 levels by indentation": "".join(f"{' ' * i}a:\n" for i in range(100)),
    "90 levels by an alias": f"a: &a {'[' * 50}{']' * 50}\nb: {'[' * 50}*a{']' * 50}\n",
    "a million question marks": "? " * 100_000 + "\n",
    "dashes": "x:\n" + "- " * 100_000 + "\n",
    "a python object": "x: !!python/object/apply:os.system [ls]\n",
    "a tag of one's own": "x: !mine 1\n",
    "a long tag": f"x: !{'y' * 100_000} 1\n",
    "a set": "x: !!set {a, b}\n",
    "an ordered map": "x: !!omap [a: 1]\n",
    "binary": "x: !!binary aGVsbG8=\n",
    "bad binary": "x: !!binary '%%%'\n",
    "a directive": "%YAML 9.9\n---\n",
    "a list as a key": "? [a, b]\n: 1\n",
    "the same key twice": "seed: 1\nseed: 2\n",
    "a tab": "x:\n\ta: 1\n",
    "an open bracket": "x: [1, 2\n",
    "an open quote": "x: 'abc\n",
    "a bad escape": 'x: "\\q"\n',
    "a surrogate by an escape": 'x: "\\ud800"\n',
    "a surrogate in a key": '"\\ud800": 1\n',
    "escape codes in a key": '"\\e[31mred\\e[0m": 1\n',
    "a line end in a key": '"a\\nerror: b": 1\n',
    "right to left in a key": '"a\\u202eb": 1\n',
    "a NUL in a key": '"a\\0b": 1\n',
    "a null key": "~: 1\n",
    "a number as a key": "5: 1\n",
    "a long anchor": f"x: &{'y' * 100_000} 1\n",
    "100,000 anchors": "&a " * 100_000 + "\n",
    "two documents": "a: 1\n---\n",
    "only keys": "".join(f"k{i}:\n" for i in range(500)),
}
_UTF8_GOOD = json.dumps(GOOD)
_WHOLE: Mapping[str, bytes] = {
    "empty": b"",
    "blanks": b" \n\n ",
    "a comment": b"# nothing\n",
    "a list": b"- 1\n- 2\n",
    "a word": b"word\n",
    "a number": b"5\n",
    "null": b"null\n",
    "UTF-16": _UTF8_GOOD.encode("utf-16"),
    "UTF-16 without a mark": _UTF8_GOOD.encode("utf-16-le"),
    "UTF-32": _UTF8_GOOD.encode("utf-32"),
    "Latin-1": b"name: \xe9t\xe9\n",
    "a NUL": _UTF8_GOOD.encode() + b"\0",
    "all bytes": bytes(range(256)),
    "a surrogate in UTF-8": b"name: \xed\xa0\x80\n",
    "zeros": bytes(100_000),
    "zeros of 3 MB": bytes(3_000_000),
    "a PNG": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "gzip": b"\x1f\x8b\x08" + bytes(100),
    "control characters": b"name: \x1b[31m\n",
    "form feeds": b"name: a\x0c\n",
    "deep JSON": b'{"a":' * 5_000,
    "JSON that is cut": _UTF8_GOOD.encode()[:-3],
}
_NAMES: Mapping[str, str] = {
    "an escape code": "\x1b[31mred\x1b[0m",
    "two lines": "a\nerror: b",
    "5,000 letters": "x" * 5000,
    "a path": "../../x",
    "markup": "<script>alert(1)</script>",
    "from right to left": "\u202eabc",
    "a flag": "-rf",
    "nothing": "",
    "a NUL": "a\0b",
    "a carriage return": "a\rb",
    "Chinese": "\u65e5\u672c",
}

# Nothing of these is a value of any of the keys, all of which are numbers above 0 or at least 0.
_NOT_NUMBERS: Mapping[str, str] = {
    "a list": "[]",
    "a mapping": "{}",
    "a mapping of mappings": "{a: {b: {c: 1}}}",
    "below 0": "-1",
    "not a number": ".nan",
    "minus infinity": "-.inf",
    "a bool": "true",
    "a date": "2026-01-01",
    "a time": "2026-01-01 12:00:00",
    "5,000 digits": "9" * 5000,
    "5,000 digits below 0": "-" + "9" * 4000,
    "a text": "many",
    "a long text": "x" * 5000,
    "escape codes": '"\\e[31m\\n\\u202e"',
    "a quoted number": '"5"',
    "binary": "!!binary aGk=",
    "a set": "!!set {1}",
    "400 digits after the point": "-0." + "1" * 400,
    "a surrogate": '"\\ud800"',
}
_NUMBERS: Mapping[str, str] = {
    "seed": "seed: {}",
    "replications": "replications: {}",
    "tensor_parallel": "tensor_parallel: {}",
    "max_model_len": "max_model_len: {}",
    "horizon_s": "horizon_s: {}",
    "clock_resolution_s": "clock_resolution_s: {}",
    "num_requests": "workload: {{num_requests: {}}}",
    "rate_rps": "workload: {{arrivals: {{process: poisson, rate_rps: {}}}}}",
    "value": "workload: {{prompt_tokens: {{distribution: constant, value: {}}}}}",
    "max_num_seqs": "policies: {{c: {{scheduler: chunked, max_num_seqs: {}}}}}",
    "blocks": "kv_cache: {{blocks: {}}}",
    "slo": "slo: {{ttft_ms: {}}}",
    "arrival_s": "workload: {{requests: [{{arrival_s: {}, prompt_tokens: 1, output_tokens: 1}}]}}",
}


def values() -> Iterator[Case]:
    """Yield scenarios in which one number is something else."""
    for key, template in _NUMBERS.items():
        for name, value in _NOT_NUMBERS.items():
            made = template.format(value)
            top = made.partition(":")[0]
            rest = {other: kept for other, kept in GOOD.items() if other != top}
            lines = "\n".join(f"{other}: {json.dumps(kept)}" for other, kept in rest.items())
            yield validated(f"{key}: {name}", f"{made}\n{lines}\n")
