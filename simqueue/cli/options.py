"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer


def scenarios_from(incomplete: str) -> list[str]:
    """Return scenario files and packaged scenarios that begin with `incomplete`, for completion in a shell."""
    head, slash, _ = incomplete.rpartition("/")
    folder = Path(f"{head}{slash}" or ".")
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    files = [f"{head}{slash}{path.name}{'/' * path.is_dir()}" for path in paths if _can_be_scenario(path)]
    packaged = import_module("simqueue.scenario.library").packaged_scenarios()  # slow, and only for completion
    return [text for text in (*packaged, *files) if text.startswith(incomplete)]


def _can_be_scenario(path: Path) -> bool:
    return not path.name.startswith(".") and (path.is_dir() or path.suffix in (".yaml", ".yml"))


Scenario = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario file, a name from `simqueue list scenarios`, or - for standard input.",
        autocompletion=scenarios_from,
    ),
]
ManyScenarios = Annotated[
    list[str],
    typer.Argument(
        metavar="SCENARIO",
        help="Scenario files, names from `simqueue list scenarios`, or - for standard input.",
        autocompletion=scenarios_from,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a scenario key; overrides the file. * stands for every name. Repeatable. Examples: --set "
        "workload.arrivals.rate_rps=20, --set policies.*.max_num_seqs=64",
    ),
]
Import = Annotated[
    list[Path] | None,
    typer.Option(
        "--import",
        metavar="FILE.py",
        help="Run a Python file first that registers schedulers or routers of your own. Repeatable. The file can do "
        "anything that you can do.",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="Random seed; overrides the scenario's.")]
Replications = Annotated[
    int | None,
    typer.Option(
        "--replications",
        metavar="N",
        min=1,
        help="Independent runs per policy; overrides `replications` and `precision` of the scenario.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        min=1,
        help="Processes that share the runs, at most one per core, which is the default.",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Share the runs among the workers of a Dask cluster, whose scheduler has this address, such as "
        "tcp://10.0.0.5:8786. Needs simqueue[dask]. Tables are the same bytes.",
    ),
]
WriteBaseline = Annotated[
    Path | None,
    typer.Option(
        "--write-baseline",
        metavar="FILE.json",
        help="Write a small file for a repository, with which `simqueue compare` compares later results.",
    ),
]
WithModelError = Annotated[
    bool,
    typer.Option(
        "--with-model-error",
        help="Run also with step times that are off by the published error of their preset, in both directions. Needs "
        "three times as long.",
    ),
]
Percentiles = Annotated[
    str | None,
    typer.Option(
        "--percentiles",
        metavar="LIST",
        help="Percentiles of latencies to show, such as 50,90,99. The summary has their columns too.",
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option("--metrics", metavar="LIST", help="Latencies to show: some of ttft,tpot,itl,e2el."),
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="A name from `simqueue list models`, or a path to a config.json."),
]
Gpu = Annotated[
    str | None,
    typer.Option("--gpu", metavar="NAME", help="A name from `simqueue list gpus`, or a path to a YAML file."),
]
TensorParallel = Annotated[
    int,
    typer.Option("--tensor-parallel", metavar="N", min=1, help="Number of GPUs that share the model."),
]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="FORMAT",
        help="Number format of the weights: fp32, bf16, fp8 or fp4. Default: the model's.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
NoFigures = Annotated[bool, typer.Option("--no-figures", help="Draw no figures.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress bar.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class Kind(StrEnum):
    """What the rows of a table of measurements are."""

    STEPS = "steps"
    LINEAR = "linear"
    SERVED = "served"
    REQUESTS = "requests"
