"""Writes the fidelity report: all errors, and the command that computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from simqueue.calibration import Case, ErrorRow, error_row
from simqueue.steptime import load_preset
from studies.fidelity.beyond import Beyond, beyond, beyond_section
from studies.fidelity.blackwell import BLACKWELL_RECIPES, BlackwellErrors, blackwell_section, compare_blackwell
from studies.fidelity.evaluate import (
    BEYOND_PRESETS,
    Compared,
    ComparedServed,
    Percent,
    compare_parts,
    compare_served,
    compare_steps,
    phase_of,
)
from studies.fidelity.figures import METRIC_TITLES, draw_all
from studies.fidelity.in_short import in_short
from studies.fidelity.left_out import LeftOut, left_out
from studies.fidelity.moe_layers import FittedLayers, fit_layers, layer_cases
from studies.fidelity.moe_report import layer_section, served_section, token_section
from studies.fidelity.moe_served import FITTED, LEFT_OUT, ServedExperts, TokenTimes, compare_experts, compare_tokens
from studies.fidelity.power import FittedPower, fit_power, power_cases, power_section
from studies.fidelity.recipes import RECIPES
from studies.fidelity.replay import METRICS, RUNS, VERSION, Replay, replay
from studies.fidelity.tables import table

COMMAND: Final = "python -m studies.fidelity"

_HEAD: Final = f"""\
<!-- Generated. Regenerate with: {COMMAND} -->

# Fidelity: errors of step times and whole runs against measurements

One command, `{COMMAND}` (or `make fidelity`), run in the repository's folder, computes all figures below. Its inputs
are the measurements in `data/groundtruth/` (origins, licences and methods: `data/groundtruth/README.md`) and the
presets of the package.
Errors are relative to the measured value, in percent; a negative error means that the simulation is too
fast. `ideal` is `preset: ideal`: full memory bandwidth and 70 % of the dense peak. It is a bound for teaching, not a
prediction. `{COMMAND} --fit FOLDER` fits the presets and computes their 5-fold held-out errors; `simqueue list presets`
shows them.
"""

_STEPS: Final = """\
## Single steps

A preset whose name ends in `-kernels` gives the time of the GPU's kernels, which is what most of these rows measure. A
served step also waits for the CPU; the preset without that ending includes it. The rows of the RTX 4090 and the RTX PRO
6000 were measured layer by layer, some at contexts that do not fit into the memory of such a GPU; these rows are kept.
The llmservingsim-engine rows are seconds of a served run without new prompts. In a quarter of them preempted requests
are recomputed, which the counters do not show. These are the slow rows that the preset misses.
"""

_SERVED: Final = """\
## Served closed loops

Each of `concurrency` clients sends a new request as soon as its last one is answered. The sequence of steps then does
not depend on how long steps take. So each run is simulated once with the engine's kind of scheduling, and each preset
gives the time of the same steps. Scheduling is chunked for vLLM, whole prompts beside decodes for TensorRT-LLM, and
prompts in steps of their own for SGLang. The token budget is that of the preset's card, else 8,192; the engine uses
90 % of the memory, and each client sends ten requests. In the InferenceMAX rows lengths are drawn from 0.8 to 1.0 of
the nominal ones. TPOT and TTFT are fitted together: `mfu` or `fp8_mfu`, `seq_us`, `step_ms`, and the time by which
the first token reaches the client later than it was made, with a part per prompt token (`front_end` in the preset's
file). The last column is the error of TPOT with the times of the kernels alone (`vllm-h100-kernels`,
`vllm-h200-kernels`): so much of a served token's time is not in the kernels.

TTFT is measured at the client. It includes HTTP, tokenisation, the queue of the API server and the return of the
first token. With Qwen3 32B it grows by some 38 ms per 1,000 prompt tokens on two, four and eight GPUs alike, and TPOT
does not: that time is outside the GPU, and requests do not wait for each other there. TTFTs of the TensorRT-LLM rows
were not fitted: they do not grow with the prompt, and fall with the number of clients (550 ms at 8 clients, 226 ms at
32, same lengths). No model of the GPU explains that time. The outliers are small pools in which requests queue: one
H200, 64 clients, 1,024 and 8,192 tokens: 5.3 s were measured, and 56 s are simulated, as if the server held twice as
many tokens.
"""

_LEFT_OUT: Final = """\
## Rows that are not used, and why

Rows of `data/groundtruth/` that none of the presets above was fitted to or compared with. Every other row is used: as a
step, as a part of a step, as a layer of experts, as a served run, as a power, or in a replay.
"""

_BEYOND: Final = """\
### Dense models beyond the presets

Served rows of dense models that no preset was fitted to, predicted with the nearest preset. That preset was fitted to
another model, precision or engine. Expect errors like these if a run warns that it leaves a preset's range.

In two of the three rows of vLLM with Qwen3 32B in FP8, a token takes less time than it takes to read the weights and
all keys and values in bf16 at full bandwidth. Either the KV cache was smaller or fewer requests were served at once;
the data does not say which.
"""

_ELSEWHERE: Final = """\
### Public measurements that are not used

- argonne-lcf/LLM-Inference-Bench (4211f5d4): 783 offline batches of vLLM and TensorRT-LLM of 2024. Each row gives one
  total time for prompts and answers of one length, so prefill and decode cannot be separated. The memory of its A100 is
  not stated. The only presets for engines of that time are those fitted to Splitwise's 70B.
- NVIDIA/TensorRT-LLM (00f37686), performance overview: 37 saturated throughputs in FP8, without latencies and without
  the number of requests in flight.
- Single results in blogs and vendors' repositories: lengths or tensor parallelism are not stated.
"""

_REPLAY: Final = f"""\
## Replays of two served runs

Two measured runs of vLLM {VERSION} with 300 requests each and Poisson arrivals at 10 requests/s. In the replay,
requests of the same lengths arrive at the times at which the engine queued them. The policy is `engine: vllm`, version
{VERSION}, with a budget of 2,048 tokens. All latencies are measured from these arrivals. Step times are those of the
presets; only their `step_ms` was fitted to these two runs. For each prompt the data gives the most tokens that the
prefix cache could hold (65 of 857 tokens on average), but not which blocks were shared. In the replay requests share
nothing.
"""


@dataclass(frozen=True, slots=True)
class Findings:
    """All comparisons that the report shows."""

    steps: Sequence[Compared]
    parts: Sequence[Compared]
    served: Sequence[ComparedServed]
    beyond: Sequence[ComparedServed]
    layers: Sequence[FittedLayers]
    experts: Sequence[ServedExperts]
    experts_left_out: Sequence[ServedExperts]
    blackwell: Sequence[BlackwellErrors]
    tokens: Sequence[TokenTimes]
    power: Sequence[FittedPower]
    foreign: Sequence[Beyond]
    left_out: Sequence[LeftOut]
    replays: Sequence[Replay]


def find(data: Path) -> Findings:
    """Make all comparisons with the measurements in a folder."""
    steps = compare_steps(data)
    experts = compare_experts(data, (*FITTED, *LEFT_OUT))
    dense = compare_served(data, BEYOND_PRESETS)
    return Findings(
        steps=steps,
        parts=compare_parts(data),
        served=compare_served(data),
        beyond=dense,
        layers=fit_layers(layer_cases(data)),
        experts=experts[: len(FITTED)],
        experts_left_out=experts[len(FITTED) :],
        blackwell=compare_blackwell(data),
        tokens=compare_tokens(data),
        power=fit_power(power_cases(data)),
        foreign=beyond(data, experts[len(FITTED) :], dense),
        left_out=left_out(data),
        replays=[replay(run, data) for run in RUNS],
    )


def write_report(found: Findings, out: Path) -> list[Path]:
    """Write ``fidelity.md`` and its figures.

    Parameters
    ----------
    found : Findings
    out : Path
        The folder of the report; figures go into ``fidelity/`` inside it.

    Returns
    -------
    list of Path
        The files.
    """
    figures = out / "fidelity"
    figures.mkdir(parents=True, exist_ok=True)
    drawn = draw_all(found.steps, found.served, found.replays, figures)
    report = out / "fidelity.md"
    sections = [
        *in_short(found.steps, found.replays, served_names(found)),
        *_step_section(found.steps, found.parts),
        *_served_section(found.served),
        *layer_section(found.layers),
        *served_section(found.experts, found.experts_left_out),
        *blackwell_section(found.blackwell),
        *token_section(found.tokens),
        *_replay_section(found.replays),
        *beyond_section(found.foreign),
        *power_section(found.power),
        *_preset_section(),
        *_left_out_section(found.left_out, found.beyond),
    ]
    report.write_text("\n".join([_HEAD, *sections]) + "\n", encoding="utf-8")
    return [report, *drawn]


def served_names(found: Findings) -> list[str]:
    """Return the presets of served runs, in the order of the report."""
    dense, experts = (one.tpot.preset for one in found.served), (one.choice.preset for one in found.experts)
    return list(dict.fromkeys([*dense, *experts]))


def _step_section(steps: Sequence[Compared], parts: Sequence[Compared]) -> Iterator[str]:
    yield _STEPS
    yield "![Predicted over measured step time](fidelity/steps.png)\n"
    yield "### By source, GPU and phase\n"
    yield table(_HEADER, [line for one in steps for line in _lines(one, phase_of, whole=True)])
    yield _largest_errors(steps)
    yield "### By source, GPU and tensor parallelism\n"
    yield table(_HEADER, [line for one in steps for line in _lines(one, _tp, whole=False)])
    yield "### By source, GPU and model\n"
    yield table(_HEADER, [line for one in steps for line in _lines(one, lambda case: case.model.name, whole=False)])
    yield "### Parts of steps\n"
    yield (
        "vidur's rows are the layers without attention; norms, rope and activations are included. Nothing is fitted to "
        "them: they test the linear terms of the kernel presets. The data of these presets does not contain norms, "
        "rope and activations, so their time is missing from the predictions here.\n"
    )
    yield table(_HEADER, [line for one in parts for line in _lines(one, lambda case: str(case.group), whole=True)])


def _largest_errors(steps: Sequence[Compared]) -> str:
    """Return a paragraph on the group with errors far above those of its whole set."""
    (host_bound,) = [one for one in steps if (one.source, one.gpu) == ("splitwise", "a100-80gb")]
    prompts = _mape(host_bound, lambda case: phase_of(case) == "prefill")
    return (
        "The tests limit the mean error of whole sets: kernels of vLLM to 3 % on the H100 and 4 % on the H200 and A100 "
        "over all tensor parallelisms, the RTX cards to 6 % with and without mixed steps, and Splitwise's decodes to "
        "4 %. One group has a much larger error than its set. The mean error of Splitwise's prompts on the A100 is "
        f"{prompts:.1f} %; the tests do not limit it. Several prompts in a step took longer than one prompt with as "
        "many tokens (TP 2, 2,048 tokens: 845 ms in four prompts, 687 ms in one). That preset has too few terms for "
        "this difference and averages it.\n"
    )


def _mape(one: Compared, wanted: Callable[[Case], bool]) -> float:
    inside = np.array([wanted(case) for case in one.cases])
    return error_row("", one.calibrated[inside]).mape


_HEADER: Final = (
    *("source", "GPU", "preset", "group", "rows"),
    *("ideal MAPE", "ideal bias", "calibrated MAPE", "median", "bias", "worst"),
)


def _lines(one: Compared, key: Callable[[Case], str], *, whole: bool) -> Iterator[Sequence[str]]:
    groups = np.array([key(case) for case in one.cases])
    names = sorted(set(groups.tolist()))
    picks = [(name, groups == name) for name in names]
    if whole and len(names) > 1:
        picks.insert(0, ("all", np.ones(len(groups), dtype=bool)))
    for name, inside in picks:
        ideal, fitted = error_row(name, one.ideal[inside]), error_row(name, one.calibrated[inside])
        yield (one.source, one.gpu, one.preset, name, str(fitted.rows), *_numbers(ideal, fitted))


def _numbers(ideal: ErrorRow, fitted: ErrorRow) -> tuple[str, ...]:
    return (
        f"{ideal.mape:.1f}",
        f"{ideal.bias:+.1f}",
        f"**{fitted.mape:.1f}**",
        f"{fitted.median:.1f}",
        f"{fitted.bias:+.1f}",
        f"{fitted.worst:.0f}",
    )


def _tp(case: Case) -> str:
    return f"TP {case.tensor_parallel}"


def _served_section(served: Sequence[ComparedServed]) -> Iterator[str]:
    yield _SERVED
    yield "![Predicted against measured TPOT](fidelity/served.png)\n"
    yield _served_table(served)
    for one in served:
        yield f"<details><summary>{one.tpot.source} on {one.tpot.gpu}, every row</summary>\n"
        yield table(
            ("TP", "isl", "osl", "clients", "TPOT ms", "simulated", "error %", "TTFT ms", "simulated", "error %"),
            list(_served_lines(one)),
        )
        yield "</details>\n"


def _served_table(served: Sequence[ComparedServed]) -> str:
    header = (
        *("engine, model", "GPU", "preset", "rows", "ideal TPOT median", "TPOT median", "TPOT MAPE", "TPOT bias"),
        *("worst", "TTFT median error", "kernels alone, median (5 % to 95 %)"),
    )
    rows = []
    for one in served:
        fitted = error_row("", one.tpot.calibrated)
        rows.append(
            (
                *(one.tpot.source, one.tpot.gpu, one.tpot.preset, str(fitted.rows)),
                f"{np.median(np.abs(one.tpot.ideal)):.1f}",
                f"**{fitted.median:.1f}**",
                *(f"{fitted.mape:.1f}", f"{fitted.bias:+.1f}", f"{fitted.worst:.0f}", f"{np.median(one.ttft):+.0f}"),
                _spread(one.kernels),
            )
        )
    return table(header, rows)


def _spread(percent: Percent) -> str:
    low, middle, high = np.percentile(percent, [5, 50, 95])
    return f"{middle:+.0f} ({low:+.0f} to {high:+.0f})"


def _served_lines(one: ComparedServed) -> Iterator[Sequence[str]]:
    for row, tpot, ttft in zip(one.rows, one.tpot.calibrated, one.ttft, strict=True):
        pairs = ((row.tpot.measured_s, tpot), (row.ttft.measured_s, ttft))
        cells = [
            cell
            for measured_s, percent in pairs
            for cell in (f"{1e3 * measured_s:.2f}", f"{1e3 * measured_s * (1 + percent / 100):.2f}", f"{percent:+.1f}")
        ]
        yield (str(row.tensor_parallel), str(row.isl), str(row.osl), str(row.concurrency), *cells)


def _replay_section(replays: Sequence[Replay]) -> Iterator[str]:
    yield _REPLAY
    rows = []
    for one in replays:
        for metric in METRICS:
            for statistic, of in (("mean", np.mean), ("median", np.median), ("p95", _p95)):
                measured, simulated = float(of(one.measured[metric])), float(of(one.simulated[metric]))
                error = 100 * (simulated / measured - 1)
                shown = f"**{error:+.1f}**" if statistic == "mean" else f"{error:+.1f}"
                title = f"{statistic} {METRIC_TITLES[metric]}"
                rows.append((one.run.title, title, f"{measured:,.1f}", f"{simulated:,.1f}", shown))
        preempted = (f"at least {one.measured_preemptions}", str(one.simulated_preemptions), "")
        rows.append((one.run.title, "preemptions", *preempted))
    yield table(("run", "ms", "measured", "replayed", "error %"), rows)
    yield (
        "The log does not say how often a request was preempted. At each second the preempted requests are those that "
        "were scheduled and have not ended, minus those that run. Each increase of this number is at least that many "
        "preemptions, so their sum is the least number that explains the series. On the RTX PRO 6000, where the KV "
        "pool is large enough, it is the noise of the count.\n"
    )
    for one in replays:
        yield f"### {one.run.title}\n\n{one.run.note}\n"
        yield f"![CDF of TTFT, TPOT and E2EL](fidelity/replay-{one.run.gpu}-cdf.png)\n"
        yield f"![Running and waiting requests over time](fidelity/replay-{one.run.gpu}-series.png)\n"


def _p95(values: np.ndarray) -> float:
    return float(np.percentile(values, 95))


def _preset_section() -> Iterator[str]:
    yield "## The presets\n"
    yield (
        "The data that each preset was fitted to, its errors as stated in its file (5-fold: every fifth row is "
        "predicted by a fit to the others), and the values that the data does not determine.\n"
    )
    names = [recipe.name for recipe in (*RECIPES, *BLACKWELL_RECIPES)]
    rows = []
    for name in names:
        card = load_preset(name).card
        errors = "; ".join(f"{error.data} {error.mape_percent:.1f} ({error.rows})" for error in card.errors)
        loose = "; ".join(card.not_identified) or "-"
        rows.append((f"`{name}`", str(card.engine), str(card.fitted_on), errors, loose))
    yield table(("preset", "engine", "fitted on", "MAPE % (rows)", "not identified"), rows)


def _left_out_section(groups: Sequence[LeftOut], beyond: Sequence[ComparedServed]) -> Iterator[str]:
    yield _LEFT_OUT
    yield table(("table", "rows", "why"), [(f"`{group.table}`", str(group.rows), group.why) for group in groups])
    yield _BEYOND
    yield _served_table(beyond)
    yield _ELSEWHERE
