"""What was run, in a few lines: model, GPU, step times, traffic, policies, limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from simqueue.report.lines import number

if TYPE_CHECKING:
    from simqueue.figures.view import ResultView

Values = Mapping[str, Any]


def facts(result: ResultView) -> dict[str, str]:
    """Return label and text of each fact about a run; what does not apply is left out."""
    scenario = result.scenario
    policies: Mapping[str, Values] = scenario.get("policies") or {}
    found = {
        "Model": _model(scenario),
        "GPU": _of_policies({name: _gpu(one) for name, one in policies.items()}),
        "Step times": _of_policies({name: _step_times(one) for name, one in policies.items()}),
        "KV memory": _of_policies({name: _pool(one.get("kv_cache")) for name, one in policies.items()}),
        "Workload": "; ".join(_workloads(scenario)),
        "Requests": _requests(result),
        "Policies": "; ".join(f"{name}: {_policy(one)}" for name, one in policies.items()),
        "SLO": ", ".join(_limits(result.slo)),
        "Replications": _replications(result),
        "Warm-up": f"{result.warmup_s:,.4g} s" if result.warmup_s else "",
    }
    return {label: text for label, text in found.items() if text}


def _of_policies(texts: Mapping[str, str]) -> str:
    """Return the text of all policies, or each policy's own if they differ."""
    different = dict.fromkeys(texts.values())
    if len(different) == 1:
        return next(iter(different))
    return "; ".join(f"{name}: {text or '-'}" for name, text in texts.items())


def _model(scenario: Values) -> str:
    model = scenario.get("model")
    weights = f", weights in {scenario['dtype']}" if isinstance(scenario.get("dtype"), str) else ""
    return f"{_named(model)}{weights}" if model else ""


def _named(given: Any) -> str:
    """Return the name of a model or a GPU, or the keys by which it is described."""
    if isinstance(given, Mapping):
        return "described by " + ", ".join(f"{key} {value}" for key, value in given.items() if value is not None)
    return str(given)


def _gpu(policy: Values) -> str:
    gpu, count = policy.get("gpu"), policy.get("tensor_parallel")
    if not gpu:
        return ""
    return f"{count} × {_named(gpu)} (tensor parallel)" if isinstance(count, int) and count > 1 else _named(gpu)


def _step_times(policy: Values) -> str:
    """Return the model of the step times, and the factor if there is one."""
    text, factor = _step_time(policy.get("step_time")), policy.get("step_time_factor", 1)
    return f"{text}, times {factor:g}" if text and factor != 1 else text


def _step_time(step_time: Any) -> str:
    if not isinstance(step_time, Mapping):
        return ""
    if preset := step_time.get("preset"):
        shares = [f"{key} {step_time[key]:g}" for key in ("bandwidth_share", "mfu") if step_time.get(key) is not None]
        return f"{step_time.get('kind')}, preset {preset}" + (f" ({', '.join(shares)})" if shares else "")
    values = [f"{key} {value:g}" for key, value in step_time.items() if isinstance(value, int | float)]
    return ", ".join([str(step_time.get("kind")), *values])


def _pool(kv_cache: Any) -> str:
    if not isinstance(kv_cache, Mapping) or not isinstance(blocks := kv_cache.get("blocks"), int):
        return ""
    size = kv_cache.get("block_size")
    return f"{blocks:,} blocks" + (f" of {size} tokens = {blocks * size:,} tokens" if isinstance(size, int) else "")


def _workloads(scenario: Values) -> Iterator[str]:
    many = scenario.get("workloads")
    if isinstance(many, Mapping):
        yield from (f"{name}: {_workload(one)}" for name, one in many.items())
    elif isinstance(one := scenario.get("workload"), Mapping):
        yield _workload(one)


def _workload(workload: Values) -> str:
    """Return where the requests come from, with the given rate."""
    if isinstance(trace := workload.get("trace"), Mapping):
        scale = trace.get("rate_scale")
        faster = f", rate × {scale:g}" if isinstance(scale, int | float) and scale != 1 else ""
        return f"trace {trace.get('name') or trace.get('path')}{faster}"
    if workload.get("requests"):
        return "a list of requests"
    parts = [kind for kind in ("sessions", "users") if workload.get(kind)]
    if isinstance(arrivals := workload.get("arrivals"), Mapping):
        rate = arrivals.get("rate_rps")
        parts.append(f"{arrivals.get('process')} arrivals" + (f", {rate:g} requests/s" if _is_number(rate) else ""))
    for key, what in (("prompt_tokens", "prompts"), ("output_tokens", "outputs")):
        if isinstance(lengths := workload.get(key), Mapping):
            parts.append(f"{what} {lengths.get('distribution')}")
    if _is_number(most := workload.get("max_concurrency")):
        parts.append(f"at most {most:,} at a time")
    return ", ".join(parts)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _requests(result: ResultView) -> str:
    """Return number, rate and mean lengths of the requests of the first policy's first replication."""
    table = result.requests
    if table.empty:
        return ""
    own = table[(table["policy"] == table["policy"].iloc[0]) & (table["replication"] == table["replication"].min())]
    span_s = float(own["arrival_s"].max() - own["arrival_s"].min())
    rate = f" in {number(span_s)} s ({number((len(own) - 1) / span_s)} requests/s)" if span_s > 0 else ""
    prompt, output = (float(own[name].mean()) for name in ("prompt_tokens", "output_tokens"))
    lengths = f"prompts of {prompt:,.0f} tokens and outputs of {output:,.0f} tokens on average"
    return f"{len(own):,}{rate}, {lengths}"


def _policy(policy: Values) -> str:
    """Return engine and version, or the scheduler, and the limits of a step."""
    if policy.get("engine"):
        shown = f"{policy['engine']} {policy.get('version', '')}".strip()
    else:
        shown = str(policy.get("scheduler", "own policy"))
    limits = ("max_num_seqs", "max_num_batched_tokens", "chunk_tokens", "n_parallel", "n_batch")
    return ", ".join([shown, *(f"{key} {policy[key]:,}" for key in limits if _is_number(policy.get(key)))])


def _limits(slo: Mapping[str, Any]) -> Iterator[str]:
    for name, limit in slo.items():
        if _is_number(limit):
            yield f"{name.removesuffix('_ms').replace('_', ' ').upper()} {limit:,g} ms"


def _replications(result: ResultView) -> str:
    rows = [row for row in result.summary_rows if row["request_class"] == "all"]
    counts = {str(row["policy"]): f"{row['replications']}" for row in rows}
    return _of_policies(counts) if result.replicated else ""
