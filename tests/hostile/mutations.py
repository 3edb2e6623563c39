"""Random changes of good scenarios and of the files that they name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from .case import GOOD
from .files import NAMING

_LENGTHS = {key: GOOD["workload"][key] for key in ("prompt_tokens", "output_tokens")}
_ENGINE = {"engine": "vllm", "version": "0.33.0"}
_REQUEST = {"id": "a", "arrival_s": 0.5, "prompt_tokens": 3, "output_tokens": 2, "class": "x", "timeout_s": 4}
_SESSIONS = {"arrivals": GOOD["workload"]["arrivals"], "num_sessions": 3, "turns": GOOD["workload"]["output_tokens"]}
_DISTRIBUTIONS = (
    {"distribution": "lognormal", "median": 10, "sigma": 1.0, "max": 100},
    {"distribution": "uniform", "low": 1, "high": 9},
    {"distribution": "zipf", "exponent": 1.2, "ranks": 50},
    {"distribution": "histogram", "edges": [1, 5, 9], "weights": [1, 2]},
    {"distribution": "empirical", "values": [1, 2, 3]},
    {"distribution": "gamma", "mean": 10, "cv": 0.5},
    {"distribution": "pareto", "scale": 2, "alpha": 3.0},
    {"distribution": "geometric", "mean": 9},
)
_ARRIVALS = (
    {"process": "gamma", "rate_rps": 3, "cv": 2},
    {"process": "all_at_once"},
    {"process": "constant", "rate_rps": 2},
)

SCENARIOS: tuple[dict[str, Any], ...] = (
    dict(GOOD),
    {
        **GOOD,
        "seed": 3,
        "replications": 2,
        "horizon_s": 5,
        "warmup_s": 1,
        "slo": {"ttft_ms": 100},
        "tensor_parallel": 2,
    },
    {
        **GOOD,
        "policies": {"a": _ENGINE, "b": {"scheduler": "static", "max_num_seqs": 4}, "l": {"scheduler": "llamacpp"}},
    },
    {**GOOD, "workload": {"requests": [_REQUEST, {**_REQUEST, "id": 7, "prompt": [[1, 0, 3]]}]}},
    {**GOOD, "workload": {"sessions": _SESSIONS, **_LENGTHS}},
    {**GOOD, "workload": {"users": {"count": 2, "ramp_up_s": 1}, "num_requests": 5, **_LENGTHS}},
    {
        **GOOD,
        "kv_cache": {"layout": "paged", "block_size": 16, "blocks": 100},
        "step_time": {"kind": "constant", "seconds": 1},
    },
    {**GOOD, "workload": None, "workloads": {"x": {**GOOD["workload"], "classes": {"a": {"weight": 1}}}}},
    {**GOOD, "gpu": {"name": "g", "memory_bytes": 8e10, "bandwidth_bytes_per_s": 2e12, "flops_per_s": 3e14}},
    *({**GOOD, "workload": {**GOOD["workload"], "prompt_tokens": length}} for length in _DISTRIBUTIONS),
    *({**GOOD, "workload": {**GOOD["workload"], "arrivals": arrivals}} for arrivals in _ARRIVALS),
)

FILES: dict[str, bytes] = {
    "model": json.dumps(
        {
            "architectures": ["LlamaForCausalLM"],
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_attention_heads": 32,
            "num_hidden_layers": 32,
            "num_key_value_heads": 8,
            "vocab_size": 128256,
            "torch_dtype": "bfloat16",
            "max_position_embeddings": 131072,
        }
    ).encode(),
    "gpu": b"memory_bytes: 8e10\nbandwidth_bytes_per_s: 3e12\nflops_per_s: 1e15\n",
    "table of steps": b"decodes,context,prefill,ms\n0,0,16,3\n1,10,0,2\n1,10,16,4\n",
    "lengths": b"tokens,weight\n10,1\n20,2.5\n",
    "curve": b"category,window_start_s,total_rate_rps\na,0,1\na,10,3\n",
    "azure trace": b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,4808,10\n",
    "burstgpt trace": b"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,x\n",
    "mooncake trace": b'{"timestamp": 5, "input_length": 20, "output_length": 3, "hash_ids": [1]}\n',
    "csv trace": b"arrival_s,prompt_tokens,output_tokens,class\n0.5,3,4,a\n1,2,3,b\n",
    "jsonl trace": b'{"arrival_s": 0.5, "prompt_tokens": 3, "output_tokens": 4, "prompt": [[1, 0, 3]]}\n',
    "vllm-bench trace": b'{"start_times": [1.5, 2], "input_lens": [3, 4], "output_lens": [5, 6]}\n',
}
"""Kind, as in `NAMING` -> a small file that is right, or nearly."""

_SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 1, 10**9, 10**12, 10**18, 2**63, 10**30, 10**310, 1e-300, 1e-9, 1e300, -0.0, 0.5, 1e18]),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(
        ["auto", "constant", "inf", "nan", "9" * 40, "\x1b[31m", "a\nb", "\u202e", "{text}", "%s", "x" * 300]
    ),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=5,
)
_PIECES = st.one_of(
    st.binary(max_size=6),
    st.sampled_from(",\n\"'[]{}:#-\r\0").map(str.encode),
    st.sampled_from([b"", b"- ", b"&a ", b"*a", b"<<: ", b"!!", b"? ", b"|\n", b"e999", b"1e400", b"NaN", b"9" * 30]),
    st.sampled_from([b"null", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf"]),
)


@dataclass(frozen=True)
class Input:
    """A scenario, and the files that it names."""

    files: dict[str, bytes]


@st.composite
def inputs(draw: st.DrawFn) -> Input:
    """Return a good scenario with its files, changed in a few places."""
    kind = draw(st.sampled_from(["keys", "keys", "bytes", *FILES]))
    if kind in FILES:
        name, changes = NAMING[kind]
        file = _changed_bytes(draw, FILES[kind]) if draw(st.booleans()) else _changed_cells(draw, FILES[kind])
        return Input({"s.yaml": json.dumps({**GOOD, **changes}, indent=1).encode(), name: file})
    scenario = json.loads(json.dumps(draw(st.sampled_from(SCENARIOS))))
    if kind == "bytes":
        text = json.dumps(scenario, indent=1).encode()
        return Input({"s.yaml": _changed_bytes(draw, text)})
    for _ in range(draw(st.integers(1, 3))):
        _change_keys(draw, scenario)
    return Input({"s.yaml": json.dumps(scenario, indent=1).encode("utf-8", "surrogatepass")})


def _change_keys(draw: st.DrawFn, place: Any) -> None:
    """Change, add, rename or take away one entry somewhere inside."""
    while True:
        keys: list[Any] = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        inner = place[key]
        if not (isinstance(inner, dict | list) and inner and draw(st.booleans())):
            break
        place = inner
    action = draw(st.sampled_from(["value", "value", "value", "gone", "twin"]))
    if action == "value":
        place[key] = draw(_VALUES)
    elif action == "gone":
        del place[key]
    elif isinstance(place, dict):
        place[draw(st.text(max_size=4)) + str(key)] = place[key]
    else:
        place.append(place[key])


def _changed_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """Put pieces in place of parts."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 8)))
        content = content[:start] + draw(_PIECES) * draw(st.sampled_from([1, 1, 1, 2, 50])) + content[end:]
    return content


def _changed_cells(draw: st.DrawFn, content: bytes) -> bytes:
    """Put another value in place of a number or of a word."""
    if content.startswith(b"{"):
        found = json.loads(content)
        _change_keys(draw, found)
        return json.dumps(found).encode("utf-8", "surrogatepass")
    lines = [line.split(b",") for line in content.splitlines()]
    row = draw(st.integers(0, len(lines) - 1))
    column = draw(st.integers(0, len(lines[row]) - 1))
    value = draw(_SCALARS)
    lines[row][column] = str(value).encode("utf-8", "surrogatepass")
    return b"\n".join(b",".join(line) for line in lines) + b"\n"
