"""Commands that compute without running a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from simqueue.cli.command import command
from simqueue.cli.options import (
    Debug,
    Gpu,
    Import,
    Json,
    Kind,
    Model,
    Quiet,
    Set,
    TensorParallel,
    Weights,
    scenarios_from,
)


@command("theory:theory")
def theory(
    name: Annotated[
        str | None, Argument(metavar="NAME", help="Formula to evaluate. Without it, all formulas are listed.")
    ] = None,
    values: Annotated[
        list[str] | None,
        Argument(metavar="KEY=VALUE", help="Parameters of the formula. Without them, they are listed."),
    ] = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Evaluate a formula of queueing theory.

    Rates are per second, times in seconds. Example: simqueue theory mm1 arrival_rate=0.8 service_rate=1
    """


@command("explain:explain")
def explain(
    scenario: Annotated[
        str | None,
        Argument(
            metavar="SCENARIO",
            help="A scenario whose fleets are shown, instead of a step: a file, a packaged name, or - for standard "
            "input.",
            autocompletion=scenarios_from,
            show_default=False,
        ),
    ] = None,
    model: Model = None,
    gpu: Gpu = None,
    preset: Annotated[
        str,
        Option("--preset", metavar="NAME", help="A name from `simqueue list presets`, or a path to a YAML file."),
    ] = "ideal",
    tensor_parallel: TensorParallel = 1,
    expert_parallel: Annotated[
        bool, Option("--expert-parallel", help="Each GPU has whole experts instead of a share of every expert.")
    ] = False,
    decode: Annotated[int, Option("--decode", metavar="N", min=0, help="Number of requests that decode.")] = 0,
    context: Annotated[
        int,
        Option("--context", metavar="TOKENS", min=1, help="Tokens that each decode attends to, its own included."),
    ] = 1024,
    prefill: Annotated[
        list[str] | None,
        Option(
            "--prefill",
            metavar="[PAST:]NEW",
            help="A chunk of a prompt: PAST tokens in the KV cache, NEW tokens to compute. Repeatable.",
        ),
    ] = None,
    weights: Weights = None,
    route: Annotated[
        str | None,
        Option("--route", metavar="REQUEST_ID", help="Show why this request of the scenario went to its replica."),
    ] = None,
    policy: Annotated[
        str | None,
        Option("--policy", metavar="NAME", help="Policy for --route. Default: the first one with a fleet."),
    ] = None,
    set_: Set = None,
    import_: Import = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Explain a step, the fleets of a scenario, or a route.

    With --model and --gpu: bytes, FLOPs and milliseconds of each term of a step; the terms that add up to its time are
    marked. With a scenario: the replicas of each policy, their router, the ages of its signals, and what happens after
    failures, each value with its origin.

    With a scenario and --route, the policy is run until the request is served. Prints each decision about it: what the
    router knew of each replica and how old that was, its scores, and what it chose.
    """


@command("calibrate:calibrate")
def calibrate(
    table: Annotated[Path, Argument(metavar="TABLE", help="CSV file of measurements, with the columns of --kind.")],
    out: Annotated[Path, Option("--out", metavar="FILE", help="Preset to write; must end in .yaml.")],
    model: Annotated[
        str | None,
        Option(
            "--model",
            metavar="NAME",
            help="A name from `simqueue list models`, or a path to a config.json. Not for linear.",
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        Option(
            "--gpu", metavar="NAME", help="A name from `simqueue list gpus`, or a path to a YAML file. Not for linear."
        ),
    ] = None,
    kind: Annotated[Kind, Option("--kind", help="What a row of the table is; see above.")] = Kind.STEPS,
    tensor_parallel: Annotated[
        int,
        Option(
            "--tensor-parallel",
            metavar="N",
            min=1,
            help="Number of GPUs that share the model. A column of this name overrides it.",
        ),
    ] = 1,
    weights: Weights = None,
    base: Annotated[
        str | None, Option("--base", metavar="PRESET", help="Preset to take all values from that are not fitted.")
    ] = None,
    free: Annotated[
        str | None,
        Option(
            "--free",
            metavar="NAMES",
            help="Values to fit, separated by commas. Default for steps: all that the rows depend on. Default for "
            "served and requests: mfu, seq_us and step_ms; with ttft_ms also first_token_ms and, if prompts differ, "
            "first_token_us.",
        ),
    ] = None,
    drop_bad_rows: Annotated[
        bool, Option("--drop-bad-rows", help="Leave bad rows out and name each one. Without this, bad rows are errors.")
    ] = False,
    max_num_seqs: Annotated[
        int, Option("--max-num-seqs", metavar="N", min=1, help="Served, requests: maximum number of running requests.")
    ] = 256,
    max_num_batched_tokens: Annotated[
        int | None,
        Option(
            "--max-num-batched-tokens",
            metavar="N",
            min=1,
            help="Served, requests: token budget per step. Default: that of the server of --base, else 8192.",
        ),
    ] = None,
    blocks: Annotated[
        int | None,
        Option(
            "--blocks",
            metavar="N",
            min=1,
            help="Served, requests: KV pool in blocks of 16 tokens. Default: computed from the GPU's memory.",
        ),
    ] = None,
    shortest: Annotated[
        float,
        Option(
            "--shortest",
            metavar="SHARE",
            min=0.01,
            max=1.0,
            help="Served: lengths were drawn uniformly between this share of isl and osl, and isl and osl.",
        ),
    ] = 1.0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a step-time preset to measurements.

    Prints the fitted values, which of them the measurements do not determine, and the errors by phase.

    \b
    Columns of the table, by --kind:
      steps     one step: ms, decode_seqs, context_tokens (mean per decode),
                prefill_seqs, prefill_tokens (sum), past_tokens (per prompt)
      linear    the same, for `step_time: {kind: linear}`; without model and GPU
      served    one closed-loop benchmark: concurrency, isl, osl, tpot_ms,
                optionally ttft_ms, tensor_parallel
      requests  one request of a run: arrival_s, prompt_tokens, output_tokens,
                tpot_ms
    """
