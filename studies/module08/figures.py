"""Figures of the module's report."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from simqueue.experiment import run
from simqueue.figures.activity import token_gaps
from simqueue.figures.canvas import legend_below, new_figure
from simqueue.figures.roofline import roofline_figure
from simqueue.figures.style import figure_style
from simqueue.figures.timeline import Stay, draw_stays, stay_legend
from simqueue.figures.tradeoff import chunk_figure, series_figure
from simqueue.hardware import load_gpu, load_model
from simqueue.module08.bench import BENCH_POLICIES, BenchRun, planned
from simqueue.steptime import Batch
from simqueue.steptime.roofline import RooflineStepTime
from studies.module08.engines import BACKLOGS, ENGINES, VLLM, EngineRow
from studies.module08.maps import BandPanel, Point, band_figure
from studies.module08.sweep import CHUNKS, H100, ratio, run_traffic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPREADS: Final = (0.25, 0.5, 1.0)
SLOTS: Final = (2, 4, 8, 16, 32)
SPOT_REPLICATIONS: Final = 5
CHUNK_GRID: Final = (64, 128, 256, 512, 2048)


def slot_fill(runs: Sequence[BenchRun]) -> Figure:
    """Return the requests in each slot over the model calls, one panel per run; padding is marked."""
    with figure_style():
        figure = new_figure(11, 1.2 + sum(1.2 + 0.12 * run.batch_size for run in runs))
        axes = figure.subplots(len(runs), 1, sharex=True, squeeze=False, height_ratios=[r.batch_size + 6 for r in runs])
        for ax, run in zip(axes[:, 0], runs, strict=True):
            draw_stays(ax, [Stay(s.slot, str(s.request), s.start, s.start + 1, s.done, s.end) for s in run.slots])
            said = f"{run.policy}: {len(run.calls):,} calls, {100 * run.utilisation:.0f} % of the slots useful"
            ax.set(title=said)
        last = max((len(run.calls) for run in runs), default=1)
        axes[-1, 0].set(xlabel="model calls", xlim=(0, last))
        legend_below(figure, stay_legend(held=True))
    return figure


def chunk_region(results: Mapping[float, Any], title: str) -> Figure:
    """Return TTFT p95 of each chunk size, relative to continuous, over the arrival rate."""
    rates = sorted(results)
    series = {
        f"chunk {n}": [_first(ratio(results[rate], "p95_ttft_ms", f"chunked-{n}", "continuous")) for rate in rates]
        for n in CHUNKS
    }
    return series_figure(
        rates,
        series,
        xlabel="arrival rate (requests/s)",
        ylabel="TTFT p95 / that of continuous",
        title=title,
        threshold=(0.5, "half, as claimed"),
        log="xy",
    )


def cost_region(ratios: Mapping[int, Sequence[Point]], load: float) -> Figure:
    """Return TTFT p95 of each chunk size, relative to continuous, at one load, over the scale of the step cost."""
    series = {f"chunk {n}": points for n, points in ratios.items()}
    panel = BandPanel(f"Load of continuous: {load:g}", "TTFT p95 / that of continuous", series, (0.0, 0.5))
    xlabel = "factor on the module's step cost, all but the prompt term"
    return band_figure([panel], xlabel=xlabel, claimed="claimed: at most half")


def call_region() -> Figure:
    """Return the calls of padded waves, relative to refilled slots, over the slots, by spread of answer lengths."""
    series = {f"sigma {spread:g}": [_call_ratio(spread, slots) for slots in SLOTS] for spread in SPREADS}
    return series_figure(
        SLOTS,
        series,
        xlabel="slots",
        ylabel="calls, pad_to_max / continuous",
        title="512 answers, lognormal with median 180, clipped to [64, 512]",
        threshold=(1.5, "1.5, the lower end of the claim"),
        log="x",
    )


def engine_ratio(rows: Sequence[EngineRow]) -> Figure:
    """Return tokens/s of vLLM, relative to llama.cpp's slots, over the number of requests at time 0."""
    series = {
        engine: [next(row.ratio for row in rows if row.engine == engine and row.backlog == n) for n in BACKLOGS]
        for engine in ENGINES
        if engine != VLLM and "split" not in engine
    }
    return series_figure(
        BACKLOGS,
        series,
        xlabel="requests at time 0",
        ylabel="tokens/s, vLLM / llama.cpp",
        title="Two schedulers on the same GPU and kernels (simulated)",
        threshold=(1.5, "1.5 and 2.7, the ends of the claim"),
        second=2.7,
        log="xy",
    )


def spike() -> Figure:
    """Return the gaps between tokens of 32 decoding requests when a prompt of 4096 tokens joins, whole or in chunks."""
    decoding = [{"id": f"d{i}", "arrival_s": 0, "prompt_tokens": 64, "output_tokens": 120} for i in range(32)]
    long = {"id": "long", "arrival_s": 0.3, "prompt_tokens": 4096, "output_tokens": 10}
    policies = {"whole": {"scheduler": "continuous", "max_num_seqs": 64}}
    policies |= {f"chunk-{n}": {"scheduler": "chunked", "max_num_seqs": 64, "chunk_tokens": n} for n in (512, 120)}
    asked = {"name": "spike", "slo": {"tpot_ms": 50}, "workload": {"requests": [*decoding, long]}}
    return token_gaps(run({**asked, "policies": policies, **H100.keys}))


def sweet_spot(rate_rps: float, spot_tokens: float) -> Figure:
    """Return TTFT, TPOT and throughput over the token budget on the H100, with the sweet spot marked."""
    results = {
        n: run_traffic(
            H100.keys,
            rate_rps,
            {"chunked": {"scheduler": "chunked", "max_num_seqs": 32, "max_num_batched_tokens": n}},
            replications=SPOT_REPLICATIONS,
        )
        for n in CHUNK_GRID
    }
    title = f"{H100.name}, {rate_rps:g} requests/s, mean of {SPOT_REPLICATIONS} replications with 95 % intervals"
    return chunk_figure(results, "chunked", sweet_spot_tokens=spot_tokens, title=title)


def roofline() -> Figure:
    """Return the roofline of the H100 with decode steps, a prefill and a mixed step of Llama 3.1 8B."""
    return roofline_figure(
        h100_roofline(),
        {
            "1 decode at context 1024": _decodes(1),
            "32 decodes": _decodes(32),
            "256 decodes": _decodes(256),
            "prefill of 2048 tokens": Batch(prefill=((0, 2048),), sampled_rows=1),
            "32 decodes and 480 prompt tokens": Batch(32, 32, 32 * 1024, ((0, 480),), 32),
        },
        "Llama 3.1 8B on an H100 at 70 % of its FLOP/s",
    )


def h100_roofline() -> RooflineStepTime:
    """Return the ideal roofline of Llama 3.1 8B on an H100, at 70 % of the peak."""
    return RooflineStepTime.of(
        load_model("llama-3.1-8b", Path()), load_gpu("h100-sxm", Path()), bandwidth_share=1.0, mfu=0.7
    )


def _decodes(n: int) -> Batch:
    return Batch(n, n, n * 1024, (), n)


def _first(found: tuple[float, float | None] | None) -> float | None:
    return None if found is None else found[0]


def _call_ratio(spread: float, slots: int) -> float:
    rng = random.Random(7)
    lengths = [int(min(max(rng.lognormvariate(5.193, spread), 64), 512)) for _ in range(512)]
    waves, refilled = (len(planned(policy, lengths, slots).calls) for policy in BENCH_POLICIES)
    return waves / refilled
