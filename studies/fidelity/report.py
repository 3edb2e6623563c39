"""Writes the fidelity report: what every error is, and how to get the numbers again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from simqueue.calibration import Case, ErrorRow, error_row
from simqueue.steptime import load_preset
from studies.fidelity.evaluate import (
    BEYOND_PRESETS,
    Compared,
    ComparedServed,
    compare_parts,
    compare_served,
    compare_steps,
    phase_of,
)
from studies.fidelity.figures import METRIC_TITLES, draw_all
from studies.fidelity.left_out import LeftOut, left_out
from studies.fidelity.replay import METRICS, RUNS, VERSION, Replay, replay

COMMAND: Final = "python -m studies.fidelity"

_HEAD: Final = f"""\
<!-- Generated. Regenerate with: {COMMAND} -->

# Fidelity: how far the step times and whole runs are from measurements

All figures below are computed by one command, `{COMMAND}`, from the measurements in `data/groundtruth/` (origin,
licences and how each was made: `data/groundtruth/README.md`) and from the presets that come with the package. Errors
are relative to the measured value, in percent; negative is too fast. `ideal` is `preset: ideal`, full memory bandwidth
and 70 % of the dense peak: a bound for teaching, not a prediction. Presets are fitted by `{COMMAND} --fit`, which
also computes their 5-fold held-out errors; `simqueue list presets` shows them.
"""

_STEPS: Final = """\
## Single steps

A `-kernels` preset prices what the GPU's kernels take, which is what most of these rows are; a served step also waits
for the CPU and is priced by the preset without that ending. The 4090 and PRO 6000 rows were measured layer by layer,
also for contexts that no such GPU could hold at once; they are kept. The llmservingsim-engine rows are seconds of a
served run without new prompts; in a quarter of them preempted requests are computed anew, which the counters do not
show: those are the slow ones that the preset misses.
"""

_SERVED: Final = """\
## Served closed loops

`concurrency` clients ask again the instant they are answered. Which steps run then does not depend on how long they
take, so each run is simulated once, with the engine's kind of scheduling (vLLM: chunked; TensorRT-LLM: whole prompts
beside decodes; SGLang: prompts in steps of their own; budget 8,192 tokens, 90 % of the memory, ten requests a client,
lengths drawn from 0.8 to 1.0 of the nominal ones in the InferenceMAX rows), and the presets price its steps. Only TPOT
was fitted, with three values a preset: `mfu`, `seq_us`, `step_ms`.

TTFT was not fitted and comes out low. It starts at the client: HTTP, tokenisation, the queue of the API server and the
first token's way back are in the measured value and not in the simulated one. The TensorRT-LLM rows have TTFTs that do
not grow with the prompt and fall with the number of clients (550 ms at 8 clients, 226 ms at 32, same lengths): time
that no model of the GPU explains.
"""

_LEFT_OUT: Final = """\
## What was left out, and why

Rows of `data/groundtruth/` that no preset above was fitted to or put to. Every other row is used: as a step, as a part
of one, as a served run, or in a replay.
"""

_BEYOND: Final = """\
### Dense models beyond the presets

The served rows of dense models that nothing was fitted to, under the preset that comes nearest: another model,
precision or engine than it was fitted on. These errors are what to expect where a run warns that it leaves a preset's
range.

Two sets are doubtful as closed loops of so many clients. The rows of vLLM with Llama 3.1 8B in FP8 state batch sizes
and no numbers of clients; taken as clients, prompts alone would need up to four fifths of the FP8 peak. In two of the
three rows of vLLM with Qwen3 32B in FP8 a token takes less than reading the weights and everybody's keys and values in
bf16 at full bandwidth would: the cache was smaller, or fewer were served at once, and the data does not say which.
"""

_ELSEWHERE: Final = """\
### Public measurements not taken in

- argonne-lcf/LLM-Inference-Bench (4211f5d4): offline batches of vLLM and TensorRT-LLM of 2024, 783 of them. Each gives
  one total for prompts and answers of one length, so its two phases cannot be told apart; the memory of its A100 is not
  stated; and no preset is of an engine of that year but those fitted to Splitwise's 70B.
- NVIDIA/TensorRT-LLM (00f37686), performance overview: 37 saturated throughputs in FP8, without latencies and without
  the number of requests in flight.
- Single results in blogs and vendors' repositories: lengths or tensor parallelism are not stated.
"""

_REPLAY: Final = f"""\
## Replays of two served runs

Two measured runs of vLLM {VERSION}, 300 requests each, Poisson arrivals of 10 a second. The same lengths arrive at the
instants at which the engine queued them and go through `engine: vllm`, version {VERSION}, with a budget of 2,048
tokens; times count from those instants. The step times are those of the presets, of which only `step_ms` was taken from
these runs. The data says of a prompt how much of it could be found in the prefix cache at most (65 of 857 tokens on
average) but not in whose blocks; here nothing is shared between requests.
"""


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that the report shows."""

    steps: Sequence[Compared]
    parts: Sequence[Compared]
    served: Sequence[ComparedServed]
    beyond: Sequence[ComparedServed]
    left_out: Sequence[LeftOut]
    replays: Sequence[Replay]


def find(data: Path) -> Findings:
    """Compare everything in the folder of the measurements."""
    return Findings(
        steps=compare_steps(data),
        parts=compare_parts(data),
        served=compare_served(data),
        beyond=compare_served(data, BEYOND_PRESETS),
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
        *_step_section(found.steps, found.parts),
        *_served_section(found.served),
        *_replay_section(found.replays),
        *_preset_section(found.steps, found.served),
        *_left_out_section(found.left_out, found.beyond),
    ]
    report.write_text("\n".join([_HEAD, *sections]) + "\n", encoding="utf-8")
    return [report, *drawn]


def _step_section(steps: Sequence[Compared], parts: Sequence[Compared]) -> Iterator[str]:
    yield _STEPS
    yield "![Predicted over measured step time](fidelity/steps.png)\n"
    yield "### By source, GPU and phase\n"
    yield _table(_HEADER, [line for one in steps for line in _lines(one, phase_of, whole=True)])
    yield _above_the_rest(steps)
    yield "### By source, GPU and tensor parallelism\n"
    yield _table(_HEADER, [line for one in steps for line in _lines(one, _tp, whole=False)])
    yield "### By source, GPU and model\n"
    yield _table(_HEADER, [line for one in steps for line in _lines(one, lambda case: case.model.name, whole=False)])
    yield "### Parts of steps\n"
    yield (
        "vidur's rows are the layers without attention, norms, rope and activation included. Nothing is fitted to "
        "them; they check the linear terms of the kernel presets, whose own data leaves exactly these small kernels "
        "out: what is missing here is their time.\n"
    )
    yield _table(_HEADER, [line for one in parts for line in _lines(one, lambda case: str(case.group), whole=True)])


def _above_the_rest(steps: Sequence[Compared]) -> str:
    """Return the sentences on the two groups that a limit on their whole set does not show."""
    sets = {(one.source, one.gpu): one for one in steps}
    kernels, host_bound = sets["aiconfigurator", "h200-sxm"], sets["splitwise", "a100-80gb"]
    eight = _mape(kernels, lambda case: case.tensor_parallel == 8)
    prompts = _mape(host_bound, lambda case: phase_of(case) == "prefill")
    return (
        "The tests hold whole sets to limits: the kernels of vLLM to 5 % on the H100 and 6 % on the H200 and A100 over "
        "all tensor parallelisms, the RTX cards to 7 %, mixed steps included, and Splitwise's decodes to 4 %. Two "
        f"groups are worse than their set suggests. On the H200 with TP 8 the mean error is {eight:.1f} %: decodes of "
        "up to 32 requests with contexts of thousands of tokens, where each GPU has one KV head left, take up to three "
        f"times what the preset says. Splitwise's prompts on the A100 are off by {prompts:.1f} %, and no limit is put "
        "on them: several prompts in a step took longer than one of as many tokens (TP 2, 2,048 tokens: 845 ms in "
        "four, 687 ms in one), which the few terms of that preset average.\n"
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
        yield _table(
            ("TP", "isl", "osl", "clients", "TPOT ms", "simulated", "error %", "TTFT ms", "simulated", "error %"),
            list(_served_lines(one)),
        )
        yield "</details>\n"


def _served_table(served: Sequence[ComparedServed]) -> str:
    header = (
        *("engine, model", "GPU", "preset", "rows", "ideal TPOT median", "TPOT median", "TPOT MAPE", "TPOT bias"),
        *("worst", "TTFT median error"),
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
            )
        )
    return _table(header, rows)


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
    yield _table(("run", "ms", "measured", "replayed", "error %"), rows)
    yield (
        "The log does not say how often a request was preempted. At each second those who were scheduled and have not "
        "ended, less those who run, have been preempted; whenever that number grows, somebody was. That is the least "
        "number that explains the series; on the RTX PRO 6000, whose pool is ample, it shows the noise of the count.\n"
    )
    for one in replays:
        yield f"### {one.run.title}\n\n{one.run.note}\n"
        yield f"![CDF of TTFT, TPOT and E2EL](fidelity/replay-{one.run.gpu}-cdf.png)\n"
        yield f"![Running and waiting requests over time](fidelity/replay-{one.run.gpu}-series.png)\n"


def _p95(values: np.ndarray) -> float:
    return float(np.percentile(values, 95))


def _preset_section(steps: Sequence[Compared], served: Sequence[ComparedServed]) -> Iterator[str]:
    yield "## The presets\n"
    yield (
        "What each was fitted on, its errors as its file states them (5-fold: every fifth row predicted by a fit to "
        "the others), and the values that its data does not decide.\n"
    )
    names = dict.fromkeys([one.preset for one in steps] + [one.tpot.preset for one in served])
    rows = []
    for name in names:
        card = load_preset(name).card
        errors = "; ".join(f"{error.data} {error.mape_percent:.1f} ({error.rows})" for error in card.errors)
        loose = "; ".join(card.not_identified) or "-"
        rows.append((f"`{name}`", str(card.engine), str(card.fitted_on), errors, loose))
    yield _table(("preset", "engine", "fitted on", "MAPE % (rows)", "not identified"), rows)


def _left_out_section(groups: Sequence[LeftOut], beyond: Sequence[ComparedServed]) -> Iterator[str]:
    yield _LEFT_OUT
    yield _table(("table", "rows", "why"), [(f"`{group.table}`", str(group.rows), group.why) for group in groups])
    yield _BEYOND
    yield _served_table(beyond)
    yield _ELSEWHERE


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"
