"""Published measurements of routers, repeated: where sending a prompt to its cache gains, and where it loses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import simqueue as sq
from simqueue.figures.canvas import new_figure, write
from simqueue.figures.style import figure_style, line_styles
from simqueue.scenario import load
from simqueue.scenario.library import find
from studies.fleet import shared
from studies.fleet.published import ONE_WORKER_TTFT_MS, SGLANG, VLLM, VLLM_STAGE
from studies.fleet.shared import Outcome, Stage

ROUTERS: Final[Mapping[str, Any]] = {
    "round_robin": "round_robin",
    "random": "random",
    "llm_d": "llm-d",
    "affinity": "prefix_affinity",
    "cache_aware": "sglang-router",
    "dynamo": "dynamo",
}
_LADDER_ROUTERS: Final = ("round_robin", "random", "llm_d", "affinity")
ENGINE: Final[Mapping[str, Any]] = {"engine": "vllm", "version": "0.14.1", "gpu_memory_utilization": 0.95}
ONE_WORKER: Final = "fleet/one-worker"
WAVES: Final = "fleet/waves"


@dataclass(frozen=True, slots=True)
class Size:
    """How much of each measurement is simulated; None: all.

    Attributes
    ----------
    requests, prompts : int or None
    start_s : float
        When stages begin, after their warm-up.
    """

    requests: int | None = None
    prompts: int | None = None
    start_s: float = shared.START_S


SIZE: Final = Size()
SMALL: Final = Size(requests=6, prompts=6, start_s=40.0)


@dataclass(frozen=True, slots=True)
class Seen:
    """A run of a packaged scenario.

    Attributes
    ----------
    throughput_rps, ttft_ms, tpot_ms : float
        Of all requests, and means.
    largest_share : float
        Of the requests, on the replica that got most.
    """

    throughput_rps: float
    ttft_ms: float
    tpot_ms: float
    largest_share: float


@dataclass(frozen=True, slots=True)
class Found:
    """All that was simulated, by router, rung of the ladder, or policy of a scenario."""

    vllm: Mapping[str, Outcome]
    ladder: Mapping[float, Mapping[str, Outcome]]
    one_worker: Mapping[str, Seen]
    waves: Mapping[str, Seen]


def measured(size: Size = SIZE, workers: int = 1) -> Found:
    """Simulate everything."""
    prompts = size.prompts or shared.PROMPTS

    def stage(whole: Stage) -> Stage:
        return Stage(whole.rate_rps, min(whole.requests, size.requests or whole.requests))

    few = {name: ROUTERS[name] for name in _LADDER_ROUTERS}
    keys: dict[str, Any] = {"prompts": prompts, "start_s": size.start_s, "workers": workers}
    return Found(
        vllm=shared.measured(stage(VLLM_STAGE), ROUTERS, ENGINE, "vllm-h100-qwen3-32b", **keys),
        ladder={
            rung.stage.rate_rps: shared.measured(stage(rung.stage), few, ENGINE, "sglang-h100", **keys)
            for rung in SGLANG
        },
        one_worker=packaged(ONE_WORKER, size.requests, workers),
        waves=packaged(WAVES, size.requests, workers),
    )


def packaged(name: str, requests: int | None = None, workers: int = 1) -> dict[str, Seen]:
    """Run a packaged scenario, or its first requests, and return what clients saw behind each router."""
    overrides = [] if requests is None else [f"workload.num_requests={requests}"]
    result = sq.run(load(find(name), overrides), check=False, workers=workers)
    return {run.policy: _seen(run.recording.requests) for run in result.runs}


def _seen(requests: Mapping[str, Any]) -> Seen:
    found = shared.outcome_of(requests, 0.0)
    counts = np.bincount(np.asarray(requests["replica"]))
    return Seen(found.throughput_rps, 1000 * found.ttft_s, found.tpot_ms, float(counts.max() / counts.sum()))


def lines(found: Found, figure: str) -> Iterator[str]:
    """Yield the page."""
    yield "# Published measurements of routers, repeated"
    yield ""
    yield (
        "Step times come from presets that were fitted to single servers before, and nothing here was fitted to the "
        "published numbers. A dash: nothing was published. Each value is one run. Throughput counts until the last "
        "request has ended, so a few late ones matter: a shift of all arrivals by less than a second changed it by 8 %."
    )
    yield ""
    yield from _vllm_lines(found.vllm, figure)
    yield from _ladder_lines(found.ladder)
    yield from _one_worker_lines(found.one_worker)
    yield from _waves_lines(found.waves)


def _vllm_lines(found: Mapping[str, Outcome], figure: str) -> Iterator[str]:
    gains = [of["llm_d"].output_tokens_per_s / of["round_robin"].output_tokens_per_s for of in (VLLM, found)]
    waits = [of["round_robin"].ttft_s / of["llm_d"].ttft_s for of in (VLLM, found)]
    yield "## Shared prefixes on vLLM"
    yield ""
    yield (
        "Eight servers with Qwen3 32B on two H100 each; 750 prompts in 150 groups that share five sixths of a prompt; "
        "1,000 output tokens. After a warm-up in which each prompt is sent once, 1,500 requests arrive at 60 per "
        "second, far above what the servers can do. Published: llm-d, pull request 722, with a plain Kubernetes "
        "service in place of round robin."
    )
    yield ""
    yield (
        f"**Output with llm-d over round robin: published {gains[0]:.1f}, simulated {gains[1]:.1f}. Mean TTFT of round "
        f"robin over llm-d: published {waits[0]:.0f}, simulated {waits[1]:.0f}.**"
    )
    yield ""
    yield f"![Output and mean TTFT by router, published and simulated]({figure})"
    yield ""
    yield "| router | req/s | output tok/s | mean TTFT, s | mean TPOT, ms |"
    yield "|---|---|---|---|---|"
    for name, one in found.items():
        old = VLLM.get(name)
        forms = {"throughput_rps": ".2f", "output_tokens_per_s": ",.0f", "ttft_s": ".3f", "tpot_ms": ".1f"}
        pairs = (_pair(getattr(old, field, None), getattr(one, field), form) for field, form in forms.items())
        yield f"| `{name}` | {' | '.join(pairs)} |"
    yield ""
    yield "Each cell: published / simulated. What differs, and why:"
    yield ""
    yield (
        "- The prompts are the same in all stages, so behind a router by prefix a server has nearly all of a prompt, "
        "not only its group's part. That is why the mean TTFT is far below a second in an overload. With prompts of "
        "their own (`simqueue run fleet/shared-prefixes`) it is seconds."
    )
    yield (
        "- Round robin's TTFT and TPOT: the published run has less waiting and slower tokens. Only the last of 17 "
        "stages is repeated here, after one warm-up; the 15 stages between them left other contents in the caches. A "
        "Kubernetes service chooses a server per connection, nearly at random, as `random` does."
    )
    yield (
        "- TPOT: the contexts of 7,600 to 8,600 tokens and over 128 decodes per step are outside what the preset was "
        "fitted for. Published outputs have 942 tokens on average, here all have 1,000."
    )
    yield "- vLLM's version is not told. 0.14.1 is assumed; the memory share of 0.95 is that of the guide."
    yield ""


def _ladder_lines(found: Mapping[float, Mapping[str, Outcome]]) -> Iterator[str]:
    yield "## A ladder of rates on SGLang"
    yield ""
    yield (
        "The same prompts on SGLang. Published: llm-d, pull request 1643. SGLang's scheduler is not simulated: step "
        "times are those of the preset `sglang-h100`, the rules those of vLLM. llm-d looked at the caches themselves "
        "there; its default scorers and `affinity`, which sees the caches, are both shown."
    )
    yield ""
    yield "| req/s offered | router | output tok/s | mean TTFT, s |"
    yield "|---|---|---|---|"
    for rung in SGLANG:
        told = {"round_robin": rung.plain, "llm_d": rung.routed}
        for name, one in found[rung.stage.rate_rps].items():
            output, ttft = told.get(name, (None, None))
            cells = f"{_pair(output, one.output_tokens_per_s, ',.0f')} | {_pair(ttft, one.ttft_s, '.3f')}"
            yield f"| {rung.stage.rate_rps:g} | `{name}` | {cells} |"
    yield ""
    yield (
        "The output agrees at the lowest rate, where the arrivals limit it, and the order is the same at all rates. "
        "With llm-d the published TTFT is several times as long. It is 0.2 s at low rates too, so a part of it is no "
        "queue. Network, gateway and tokenization may be; none of them is simulated."
    )
    yield ""


def _one_worker_lines(found: Mapping[str, Seen]) -> Iterator[str]:
    ratios = [ONE_WORKER_TTFT_MS["hits"] / ONE_WORKER_TTFT_MS["round_robin"]]
    ratios.append(found["hits"].ttft_ms / found["round_robin"].ttft_ms)
    yield "## Where affinity loses: one server gets everything"
    yield ""
    yield (
        f"`simqueue run {ONE_WORKER}`. Two servers, and 26 % of each prompt is the same for all. Published: sglang, "
        "issue 21199, with Kimi K2.5 on servers that are not told. Here it is DeepSeek V3 on eight H200, so only the "
        "ratio can be compared."
    )
    yield ""
    yield (
        f"**Mean TTFT with `cache_aware` over round robin: published {ratios[0]:.1f}, simulated {ratios[1]:.1f} if "
        f"prompts count as hits, {found['misses'].ttft_ms / found['round_robin'].ttft_ms:.2f} if not.**"
    )
    yield ""
    yield from _seen_rows(found, ONE_WORKER_TTFT_MS)
    yield (
        "At the default threshold of 0.3, a prompt with 26 % known text is a miss. Misses go to the less loaded "
        "server, and nothing is lost. The loss appears if the known share is above the threshold: then all requests "
        "follow the first one, and the 36 in flight never reach the difference of 64 from which on the loads count. "
        "The published run may have had a larger share in characters than in tokens; this was not told. "
        "`hits_balanced` has a difference of 8."
    )
    yield ""


def _waves_lines(found: Mapping[str, Seen]) -> Iterator[str]:
    more = found["reported"].ttft_ms / found["own_count"].ttft_ms - 1
    less = 1 - found["reported"].throughput_rps / found["own_count"].throughput_rps
    yield "## Where reported queues lose: waves of requests"
    yield ""
    yield (
        f"`simqueue run {WAVES}`. Eight servers, 800 users without pauses, equal requests. Published: llm-d-router, "
        "issue 298: against a balancer that counts requests, throughput is slightly lower and TTFT significantly worse "
        "with llm-d's scorers of queue and KV use (in pictures, without numbers)."
    )
    yield ""
    yield (
        f"**With reported signals, throughput is {100 * less:.0f} % lower and the mean TTFT {100 * more:.0f} % longer "
        "than with the router's own count.**"
    )
    yield ""
    yield from _seen_rows(found, {})
    yield (
        "Requests that start together end together, and their successors arrive together. All of a wave see the same "
        "queues, at most 50 ms old. Equal requests are the best case of round robin, which is as good as counting here."
    )
    yield ""


def _seen_rows(found: Mapping[str, Seen], published_ms: Mapping[str, float]) -> Iterator[str]:
    told = " (published / simulated)" if published_ms else ""
    yield f"| policy | req/s | mean TTFT, ms{told} | mean TPOT, ms | requests of the busiest server |"
    yield "|---|---|---|---|---|"
    for name, one in found.items():
        ttft = _pair(published_ms.get(name), one.ttft_ms, ",.0f") if published_ms else f"{one.ttft_ms:,.0f}"
        yield f"| `{name}` | {one.throughput_rps:.2f} | {ttft} | {one.tpot_ms:.1f} | {100 * one.largest_share:.0f} % |"
    yield ""


def _pair(published: float | None, simulated: float, form: str) -> str:
    return f"{'-' if published is None else format(published, form)} / {simulated:{form}}"


def draw(found: Found, path: Path) -> None:
    """Draw output and mean TTFT by router, published and simulated."""
    names = list(found.vllm)[::-1]
    with figure_style():
        figure = new_figure(9.5, 3.6)
        published, simulated = line_styles(2)
        for ax, name, label in zip(
            figure.subplots(1, 2, sharey=True),
            ("output_tokens_per_s", "ttft_s"),
            ("output (tokens/s)", "mean TTFT (s)"),
            strict=True,
        ):
            places = {router: place for place, router in enumerate(names)}
            for of, style, marker, what in (
                (found.vllm, simulated, "o", "simulated"),
                (VLLM, published, "D", "published"),
            ):
                values = [getattr(one, name) for one in of.values()]
                ax.plot(values, [places[router] for router in of], marker, color=style.color, label=what)
            ax.set(xlabel=label, yticks=range(len(names)), yticklabels=names)
        figure.axes[0].set_xlim(left=0)
        figure.axes[1].set_xscale("log")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        write(figure, path)
