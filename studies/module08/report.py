"""The report on the course module, as Markdown and HTML: its arithmetic, claims, bench and engines, recomputed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from simqueue.figures.tradeoff import rate_figure
from simqueue.module08.bench import BENCH_POLICIES, module_lengths, planned
from simqueue.report.document import Cells, Document, Heading, Items, Paragraph, Picture, write_pictures
from simqueue.report.html import html
from simqueue.report.markdown import markdown
from studies.module08 import figures as drawn
from studies.module08 import regions
from studies.module08.arithmetic import quantities, sweet_spot_tokens
from studies.module08.calibrated import cost_text, fitted, simulated
from studies.module08.claims import Claim, Swept, claims
from studies.module08.engines import ENGINES, VLLM, engine_rows
from studies.module08.maps import Point
from studies.module08.recorded import Measurements, read
from studies.module08.sweep import (
    CHUNKS,
    COSTS,
    H100,
    LINEAR,
    POLICIES,
    linear,
    over_rates,
    rate_at,
    ratio,
    run_traffic,
)
from studies.module08.traffic import module_traffic, own_figures

COMMAND: Final = "python -m studies.module08 report"
BENCH_FILE: Final = Path("module08", "bench.json")
BATCH_SIZES: Final = (8, 32)
_SCALES: Final = (0.03, 0.1, 0.3, 1.0)
_LOAD: Final = 1.2
_COST_REPLICATIONS: Final = 5
# The expected output that the module states: TTFT p50 and p95, TPOT p50 and p95 in ms, tokens/s, wall time in s.
_EXPECTED: Final[Mapping[str, tuple[float | None, ...]]] = {
    "static": (1920, 8410, 78, 210, 168, 350),
    "continuous": (410, 1180, 52, 96, 385, 153),
    "chunked-8": (268, 640, 55, 104, 379, None),
    "chunked-32": (330, 880, 53, 99, 383, None),
    "chunked-512": (None, None, None, None, None, None),
}
_METRICS: Final = ("ttft_p50", "ttft_p95", "tpot_p50", "tpot_p95", "tok_s", "wall_s")


def write_report(folder: Path) -> list[Path]:
    """Write module08.md, module08.html and their figures to `folder` and return the paths.

    Measurements of the bench are read from module08/bench.json in that folder. Without that file the report says how to
    make it.
    """
    document = report(folder / BENCH_FILE)
    folder.mkdir(parents=True, exist_ok=True)
    written = write_pictures(document, folder / "module08")
    pages = {folder / "module08.md": markdown(document, "module08"), folder / "module08.html": html(document)}
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8", newline="\n")
    return [*pages, *written]


def report(bench_file: Path) -> Document:
    """Return the report. It is the same on every machine, given the same measurements of the bench."""
    document = Document("The course module on continuous batching, recomputed")
    swept = {cost.name: over_rates(cost) for cost in COSTS}
    document.add(
        Paragraph(
            "All numbers and claims of the course module on continuous batching and chunked prefill, recomputed or "
            f"simulated. Made by: {COMMAND} (or: make module08). Only the bench was measured."
        )
    )
    _add_arithmetic(document)
    _add_own_output(document)
    _add_claims(document, swept)
    _add_bench(document, bench_file)
    _add_engines(document)
    _add_pictures(document)
    return document


def _add_arithmetic(document: Document) -> None:
    rows = [(f.key, f.what, f.stated, f.recomputed, f.verdict, f.reason) for f in quantities()]
    document.add(
        Heading("The arithmetic"),
        Paragraph(
            "Configuration A has 8e9 parameters in 32 layers, 8 KV heads of dimension 128 and bf16 weights, at 3.35 "
            "TB/s and 350 TFLOP/s. Configuration B has 7e9 parameters, at 400 TFLOP/s. The module states 495 TFLOP/s "
            "as the dense bf16 peak of an H100 SXM. That is the TF32 peak; the bf16 peak is 989.4. The geometry of its "
            "8B model is that of Llama 3.1 8B, which stores 16.06 GB and reads 15.0 GB per step."
        ),
        Cells(("", "what", "stated", "recomputed", "verdict", "reason"), tuple(rows), numeric=(2, 3)),
    )


def _add_own_output(document: Document) -> None:
    own = own_figures()
    rows = [
        (clock, name, *(_number(values[metric]) for metric in _METRICS))
        for clock, found in own.items()
        for name, values in found.items()
    ]
    stated = [("stated", name, *(_number(v) for v in values)) for name, values in _EXPECTED.items() if values[0]]
    requests = module_traffic()
    n = len(requests)
    means = sum(r.prompt_len for r in requests) / n, sum(r.out_len for r in requests) / n
    document.add(
        Heading("The expected output (claim 8)"),
        Paragraph(
            "The module states 486 requests with mean lengths of 1043 prompt and 121 output tokens. Its recipe gives "
            f"{n} requests with {means[0]:.0f} and {means[1]:.0f} tokens. Its program reads arrival times in seconds "
            "as milliseconds, so all requests arrive within 30 ms. The table shows the stated results, then those with "
            "arrivals in milliseconds and as written. Verdict: wrong; no line of the stated table is reproduced."
        ),
        Cells(
            ("run", "policy", "TTFT p50 (ms)", "TTFT p95", "TPOT p50", "TPOT p95", "tokens/s", "wall (s)"),
            (*stated, *rows),
            numeric=tuple(range(2, 8)),
        ),
    )


def _add_claims(document: Document, swept: Swept) -> None:
    found = claims(swept, own_figures())
    verdicts = [(str(claim.number), claim.text, claim.own, claim.verdict) for claim in found]
    six = _bench_claim()
    verdicts.insert(
        5, ("6", "pad_to_max uses about 50 % of its slots; continuous needs 1.5 to 2 times fewer calls", *six)
    )
    document.add(
        Heading("The claims"),
        Paragraph(
            "Poisson arrivals with the module's lengths for 20 s, 32 seats, five replications. In each replication "
            "all policies see the same requests. Ratios are means over replications with the half-width of their 95 % "
            "Student-t interval. The load is that of the continuous policy. In an overloaded run percentiles grow with "
            "the length of the run."
        ),
        Cells(("", "claim", "the module's own program", "verdict"), tuple(verdicts)),
    )
    caption = f"Throughput and latency over the arrival rate, {H100.name}. Bars are 95 % intervals."
    document.add(Picture(rate_figure(swept[H100.name]), "rates-h100", caption))
    sweep = regions.cost_sweep()
    for claim in found:
        document.add(Heading(f"Claim {claim.number}: {claim.text}", 3), *_trials(claim))
        document.add(*_halved(claim, swept), *_region(claim, swept, sweep))
    document.add(Heading("Claim 6: slots in use", 3), Paragraph(six[1]))
    caption = "Calls of padded waves, divided by calls of refilled slots. The claim holds where the line is above 1.5."
    document.add(Picture(drawn.call_region(), "claim6-region", caption))


def _trials(claim: Claim) -> list[Cells]:
    tables = []
    for cost in COSTS:
        rows = tuple(
            (f"{t.rate_rps:g}", _number(t.load), *t.seen, t.holds) for t in claim.trials if t.cost == cost.name
        )
        columns = ("requests/s", "load", *claim.columns, "holds")
        tables.append(Cells(columns, rows, caption=cost.name, numeric=tuple(range(len(columns) - 1))))
    return tables


def _halved(claim: Claim, swept: Swept) -> list[Paragraph]:
    """Return, for claim 2, the chunks that halve TTFT p95, and at which arrival rates."""
    if claim.number != 2:
        return []
    said = []
    for cost in COSTS:
        found = [
            f"{n} at {rate:g} requests/s ({100 * (tokens[0] - 1):+.1f} % tokens/s)"
            for n in CHUNKS
            for rate in cost.rates_rps
            if (tail := ratio(swept[cost.name][rate], "p95_ttft_ms", f"chunked-{n}", "continuous"))
            and (tokens := ratio(swept[cost.name][rate], "output_throughput", f"chunked-{n}", "continuous"))
            and tail[0] <= 0.5
        ]
        said.append(f"{cost.name}: {', '.join(found) or 'none'}")
    return [Paragraph(f"Chunks whose mean TTFT p95 is at most half that of continuous: {'; '.join(said)}.")]


def _region(claim: Claim, swept: Swept, sweep: regions.CostSweep) -> list[Picture]:
    """Return the figures that show where a claim holds."""
    if claim.number != 2:
        figure, caption = regions.region(claim.number, swept, sweep)
        return [Picture(figure, f"claim{claim.number}-region", caption)]
    pictures = [
        Picture(
            drawn.chunk_region(swept[cost.name], cost.name), f"claim2-{key}", f"TTFT p95 by chunk size, {cost.name}."
        )
        for key, cost in (("linear", LINEAR), ("h100", H100))
    ]
    return [*pictures, _cost_picture()]


def _cost_picture() -> Picture:
    ratios = _cost_ratios()
    least = min(mean for points in ratios.values() for _, mean, _ in points)
    caption = (
        f"TTFT p95 by chunk size with the module's cost at {_LOAD:g} times the capacity of continuous, over a factor "
        f"on all terms of the cost but the one per prompt token. {_COST_REPLICATIONS} replications of 20 s; bars are "
        f"95 % intervals. The smallest ratio is {least:.3g}: "
    )
    caption += "a chunk halves it." if least <= 0.5 else "with a cost that is linear in tokens, no chunk halves it."
    return Picture(drawn.cost_region(ratios, _LOAD), "claim2-cost", caption)


def _cost_ratios() -> dict[int, list[Point]]:
    """Return TTFT p95 of each chunk, divided by that of continuous, at one load, for each scale of the cost."""
    found: dict[int, list[Point]] = {n: [] for n in CHUNKS}
    policies = {name: keys for name, keys in POLICIES.items() if name != "static"}
    for scale in _SCALES:
        keys = linear(scale)
        result = run_traffic(keys, rate_at(keys, _LOAD), policies, replications=_COST_REPLICATIONS)
        for n, points in found.items():
            if compared := ratio(result, "p95_ttft_ms", f"chunked-{n}", "continuous"):
                points.append((scale, *compared))
    return found


def _bench_claim() -> tuple[str, str]:
    lengths = module_lengths()
    parts, ratios, shares = [], [], []
    for size in BATCH_SIZES:
        waves, refilled = (planned(policy, lengths, size) for policy in BENCH_POLICIES)
        ratios.append(len(waves.calls) / len(refilled.calls))
        shares.append(waves.utilisation)
        parts.append(f"batch {size}: {100 * shares[-1]:.0f} % used, {ratios[-1]:.2f} times the calls")
    within = all(1.5 <= found <= 2 for found in ratios)
    share = all(0.45 <= found <= 0.55 for found in shares)
    said = "holds" if within and share else "does not hold as stated"
    return "; ".join(
        parts
    ), f"{said}: {_span(shares, 100)} % of the slots are used; padded waves need {_span(ratios)} times the calls"


def _span(values: Sequence[float], times: float = 1) -> str:
    return " and ".join(f"{times * value:.3g}" for value in values)


def _add_bench(document: Document, file: Path) -> None:
    lengths = module_lengths()
    document.add(Heading("The bench, measured and simulated"))
    for size in BATCH_SIZES:
        runs = [planned(policy, lengths, size) for policy in BENCH_POLICIES]
        caption = f"64 answers on {size} slots over the model calls: padded waves, and slots that are refilled."
        document.add(Picture(drawn.slot_fill(runs), f"slots-{size}", caption))
    if not file.is_file():
        command = "python -m studies.module08 bench --out reports/module08"
        document.add(Paragraph(f"There are no measurements. To measure, run `{command}`."))
        return
    document.add(*_compared(read(file), lengths))


def _compared(found: Measurements, lengths: Sequence[int]) -> list[Paragraph | Cells]:
    cost = fitted(found.times)
    rows = []
    for run in found.runs:
        said = simulated(run.policy, lengths, run.batch_size, cost)
        error = 100 * (said.tokens_per_s / run.tokens_per_s - 1)
        rows.append(
            (
                run.policy, str(run.batch_size), f"{run.generated:,}", f"{run.calls:,}", f"{said.calls:,}",
                f"{run.tokens_per_s:,.0f}", f"{said.tokens_per_s:,.0f}", f"{error:+.1f} %",
            )
        )  # fmt: skip
    said_cost = f"Measured with {found.machine}. Fitted step: {cost_text(cost)}."
    columns = (
        "policy", "slots", "tokens", "calls measured", "calls simulated", "tok/s measured", "tok/s simulated", "error"
    )  # fmt: skip
    return [Paragraph(said_cost), Cells(columns, tuple(rows), numeric=tuple(range(1, 8)))]


def _add_engines(document: Document) -> None:
    rows = engine_rows()
    held = [
        f"{engine}: {', '.join(str(r.backlog) for r in rows if r.engine == engine and _claimed(r.ratio)) or 'none'}"
        for engine in ENGINES
        if engine != VLLM
    ]
    table = tuple(
        (r.engine, str(r.backlog), str(r.completed), _number(r.tokens_per_s), _number(r.ttft_p95_ms), _number(r.ratio))
        for r in rows
    )
    document.add(
        Heading("vLLM against llama.cpp"),
        Paragraph(
            "The module says that vLLM is 1.5 to 2.7 times as fast as llama.cpp under load. No source for this could "
            "be found. The simulation compares only the two schedulers: both run the same kernels on an H100, and "
            "llama.cpp has 131,072 tokens of context, n_batch 2048 and no quantisation. The result depends on the "
            "number of slots: with as many slots as requests the ratio is about 1. Requests that are longer than a "
            "slot's part of a split context are rejected; throughput counts completed requests only."
        ),
        Paragraph("The ratio is between 1.5 and 2.7 with these numbers of requests at time 0:"),
        Items(tuple(held)),
        Picture(drawn.engine_ratio(rows), "engines", "Tokens/s of vLLM, divided by those of llama.cpp's slots."),
        Cells(
            ("engine", "requests", "completed", "tokens/s", "TTFT p95 (ms)", "vLLM / engine"),
            table,
            numeric=tuple(range(1, 6)),
        ),
    )


def _claimed(found: float | None) -> bool:
    return found is not None and 1.5 <= found <= 2.7


def _add_pictures(document: Document) -> None:
    spot = sweet_spot_tokens(drawn.h100_roofline(), decodes=24, context=1100)
    document.add(
        Heading("Effect of the chunk size"),
        Picture(drawn.spike(), "spike", "Gaps between tokens of 32 decoding requests beside a prompt of 4096 tokens."),
        Picture(
            drawn.sweet_spot(16.0, spot),
            "sweet-spot",
            f"TTFT, TPOT and throughput over the token budget of a step: {H100.name} at 16 requests/s, "
            f"{drawn.SPOT_REPLICATIONS} replications of 20 s. Bars are 95 % intervals; an arrow marks a bar that is "
            "cut off. The sweet spot is that of the ideal roofline at 70 % of the peak, with 24 decodes at context "
            "1100.",
        ),
        Picture(drawn.roofline(), "roofline", "Decode steps, a prefill and a mixed step on the roofline."),
    )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
