"""How each preset of the package is fitted: its data, its free values, and the values from other sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from simqueue.calibration import FRONT_END, Case, StepCase
from studies.fidelity.served import BUDGET, MEMORY_SHARE, served_rows
from studies.fidelity.steps import step_cases
from studies.fidelity.token_times import PROMPT_TOKENS, token_cases

AICONFIGURATOR: Final = "ai-dynamo/aiconfigurator @ 095f58a5 (Apache-2.0)"
LLMSERVINGSIM: Final = "casys-kaist/LLMServingSim @ 5daddb21 (MIT)"
MLENERGY: Final = "ml-energy/leaderboard @ 0cd52dab"
SPLITWISE: Final = "Mutinifni/splitwise-sim @ 8f99e7dc, data/perf_model.csv (MIT)"

KERNELS: Final = (
    *("bandwidth_share", "mfu", "overlap_exponent", "kv_bandwidth_share", "attention_mfu"),
    *("layer_us", "seq_us"),
)
MIXED: Final = (
    *("mfu", "overlap_exponent", "kv_bandwidth_share", "mixed_kv_bandwidth_share", "reread_gb"),
    *("attention_mfu", "walk_ns"),
    *("layer_us", "prefill_layer_us", "seq_us"),
)
HOST_BOUND: Final = ("mfu", "layer_us", "link_share", "seq_us", "host_ms", "host_seq_us")
SERVED: Final = ("mfu", "seq_us", "step_ms")

CHUNKS: Final = 2048
"""Token budget of the servers with Qwen3 32B: with it, prompts that come together are computed in the order in which
the measured TTFT has them."""
BUDGET_AND_SHARE: Final = {"max_num_batched_tokens": BUDGET, "gpu_memory_utilization": MEMORY_SHARE}
"""The assumed settings of servers whose own are not stated."""
ROUTED: Final = ("seq_us", "expert_layer_us", "routing_correlation")
"""Of mixtures of experts whose kernels were measured in the format of their experts."""

ASSUMED_BANDWIDTH: Final = (
    0.92,
    "assumed: with one model the data cannot tell reading weights from time a layer, and no part reaches its peak",
)


OLD_ALLREDUCE: Final = (
    5.0,
    "assumed: the data cannot tell the latency of all-reduces from time a layer; the all-reduces that were measured on "
    "this GPU are of a later version",
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One preset.

    Attributes
    ----------
    name, description, gpu, engine, fitted_on : str
    cases : callable
        Returns the measurements, given the folder of the data.
    free : sequence of str
        Coefficients to fit.
    base : str or None
        Recipe whose coefficients are used unless this one fits or gives them; it must come before this one.
    given : mapping of str to (value, source)
        Coefficients that are neither fitted nor taken from the base.
    async_scheduling : bool or None
        Whether the engine planned the next step while one ran; None: the data does not say, or it is no server.
    start : mapping of str to float
        Starting values of the fit that differ from the default.
    version : int
        Of the preset; increases when a value changes.
    kernels : bool
        Whether the kernels alone were measured.
    server : mapping of str to value
        What is known of the measured server.
    """

    name: str
    description: str
    gpu: str
    engine: str
    fitted_on: str
    cases: Callable[[Path], Sequence[Case]]
    free: Sequence[str]
    base: str | None = None
    given: Mapping[str, tuple[float | None, str]] = field(default_factory=dict)
    start: Mapping[str, float] = field(default_factory=dict)
    async_scheduling: bool | None = None
    version: int = 2
    kernels: bool = False
    server: Mapping[str, Any] = field(default_factory=dict)


def _steps(gpu: str, *sources: str) -> Callable[[Path], Sequence[StepCase]]:
    return lambda folder: [case for case in step_cases(folder, sources) if case.gpu.name == gpu]


@dataclass(frozen=True, slots=True)
class Served:
    """Served runs of one kind.

    Attributes
    ----------
    engine, model, precision : str
        As in `served_rows`.
    budget : int
        Token budget of the server per step.
    whole : bool
        Whether the GPUs had whole experts.
    """

    engine: str
    model: str
    precision: str
    budget: int = BUDGET
    whole: bool = False

    def cases(self, folder: Path, gpu: str, *, ttft: bool) -> list[Case]:
        """Return the means of TPOT and, if wanted, of TTFT."""
        rows = served_rows(folder, self.engine, self.model, self.precision, gpu, self.budget)
        kept = [row for row in rows if row.tpot.expert_parallel == self.whole]
        return [*(row.tpot for row in kept), *(row.ttft for row in kept if ttft)]


def _kernels(name: str, gpu: str, engine: str, given: Mapping[str, tuple[float | None, str]]) -> Recipe:
    return Recipe(
        name=name,
        description=f"Sums of vLLM's bf16 kernels on {gpu}: no CPU, no sampler; 10 to 70 % below served steps of vLLM",
        gpu=gpu,
        engine=engine,
        fitted_on=f"{AICONFIGURATOR}: kernels of decode and prefill, Llama 3 8B and 70B, Qwen3 8B and 32B, TP 1 to 8",
        cases=_steps(gpu, "aiconfigurator"),
        free=[key for key in KERNELS if key not in given],
        given=given,
        kernels=True,
    )


def _mixed(name: str, gpu: str) -> Recipe:
    return Recipe(
        name=name,
        description=f"Sums of vLLM's bf16 layer kernels and sampler on {gpu}, mixed steps included: no CPU",
        gpu=gpu,
        engine="vLLM 0.19.0, kernels",
        fitted_on=f"{LLMSERVINGSIM}: Llama 3.1 8B in bf16; decode, prefill and mixed steps, one GPU",
        cases=_steps(gpu, "llmservingsim"),
        free=MIXED,
        given={"bandwidth_share": ASSUMED_BANDWIDTH},
        kernels=True,
    )


def _served_steps(name: str, gpu: str, base: str) -> Recipe:
    return Recipe(
        name=name,
        description=f"vLLM on {gpu}, CPU included",
        gpu=gpu,
        engine="vLLM 0.19.0, serving",
        fitted_on=f"{LLMSERVINGSIM}: seconds without prefill of a served run, mean(running) / generation throughput",
        cases=_steps(gpu, "llmservingsim-engine"),
        free=("step_ms",),
        base=base,
        async_scheduling=True,  # the default of this version
    )


def _host_bound(name: str, gpu: str, base: str) -> Recipe:
    return Recipe(
        name=name,
        description=f"vLLM of 2023 on {gpu}, 70B: decode steps wait for the CPU",
        gpu=gpu,
        engine="vLLM 2023",
        fitted_on=f"{SPLITWISE}: Llama 2 70B, TP 2 to 8, whole measured steps",
        cases=_steps(gpu, "splitwise"),
        free=HOST_BOUND,
        base=base,
        given={"allreduce_us": OLD_ALLREDUCE},
        async_scheduling=False,  # no version had it then
        start={"host_ms": 35.0, "link_share": 0.3, "layer_us": 130.0, "seq_us": 380.0, "host_seq_us": 280.0},
    )


def _served(
    name: str,
    gpu: str,
    engine: str,
    what: str,
    free: Sequence[str],
    *runs: Served,
    server: Mapping[str, Any] | None = None,
    version: int = 1,
) -> Recipe:
    """Return the recipe of a served model. With values of a front end among `free`, TTFT is fitted too."""
    ttft = any(value in FRONT_END for value in free)
    means = "TPOT and TTFT" if ttft else "TPOT"
    return Recipe(
        name=name,
        description=f"{engine} on {gpu}, served: {what}",
        gpu=gpu,
        engine=engine,
        fitted_on=f"{AICONFIGURATOR}, silicon_sample.csv: mean {means} of closed loops, {what}",
        cases=lambda folder: [case for run in runs for case in run.cases(folder, gpu, ttft=ttft)],
        free=free,
        base=f"vllm-{gpu.partition('-')[0]}-kernels",
        server=server or {},
        version=version,
    )


def _tokens(name: str, gpu: str, model: str, what: str, free: Sequence[str] = ("seq_us", "step_ms")) -> Recipe:
    """Return the recipe of a saturated server of which the time between tokens is known, and no TTFT."""
    return Recipe(
        name=name,
        description=f"vLLM of 2025 on {gpu}, served: {what}",
        gpu=gpu,
        engine="vLLM (undated, 2025)",
        fitted_on=f"{MLENERGY}: median time between tokens of a saturated server, {what}; prompts of {PROMPT_TOKENS} "
        "tokens assumed",
        cases=lambda folder: token_cases(folder, model),
        free=free,
        base=f"vllm-{gpu.partition('-')[0]}-kernels",
        version=1,
    )


RECIPES: Final = (
    _kernels("vllm-h100-kernels", "h100-sxm", "vLLM 0.19.0, kernels", {}),
    _kernels("vllm-h200-kernels", "h200-sxm", "vLLM 0.19.0 (attention: 0.18.0), kernels", {}),
    _kernels("vllm-a100-kernels", "a100-80gb", "vLLM 0.14.0, kernels", {}),
    _mixed("vllm-rtx-4090-kernels", "rtx-4090"),
    _mixed("vllm-rtx-pro-6000-kernels", "rtx-pro-6000"),
    _served_steps("vllm-rtx-4090", "rtx-4090", "vllm-rtx-4090-kernels"),
    _served_steps("vllm-rtx-pro-6000", "rtx-pro-6000", "vllm-rtx-pro-6000-kernels"),
    _host_bound("vllm-2023-h100", "h100-sxm", "vllm-h100-kernels"),
    _host_bound("vllm-2023-a100", "a100-80gb", "vllm-a100-kernels"),
    _served(
        "vllm-h100",
        "h100-sxm",
        "vLLM (0.12 and undated)",
        "Llama 3.1 70B in FP8 and Qwen3 32B in bf16, TP 2 to 8",
        ("mfu", "fp8_mfu", "seq_us", "step_ms"),
        Served("vllm", "llama-3.1-70b", "fp8"),
        Served("vllm", "qwen3-32b", "bf16", CHUNKS),
        version=3,
    ),
    _served(
        "vllm-h100-llama-70b",
        "h100-sxm",
        "vLLM (undated)",
        "Llama 3.1 70B in FP8, TP 2 to 8",
        ("fp8_mfu", "seq_us", "step_ms", *FRONT_END),
        Served("vllm", "llama-3.1-70b", "fp8"),
        server=BUDGET_AND_SHARE,
    ),
    _served(
        "vllm-h100-qwen3-32b",
        "h100-sxm",
        "vLLM 0.12.0",
        "Qwen3 32B in bf16, TP 2 to 8",
        (*SERVED, *FRONT_END),
        Served("vllm", "qwen3-32b", "bf16", CHUNKS),
        server={"version": "0.12.0", "max_num_batched_tokens": CHUNKS, "gpu_memory_utilization": MEMORY_SHARE},
    ),
    _tokens("vllm-h100-llama-8b", "h100-sxm", "llama-3.1-8b", "Llama 3.1 8B in bf16, one GPU"),
    _tokens(
        "vllm-h100-qwen3-30b-a3b",
        "h100-sxm",
        "qwen3-30b-a3b",
        "Qwen3 30B-A3B in bf16, one and two GPUs",
        ("seq_us", "expert_layer_us"),
    ),
    _tokens(
        "vllm-h100-qwen3-235b",
        "h100-sxm",
        "qwen3-235b-a22b",
        "Qwen3 235B-A22B in bf16, whole experts on eight GPUs",
        ("seq_us", "expert_layer_us"),
    ),
    _served(
        "vllm-h200",
        "h200-sxm",
        "vLLM (undated)",
        "Llama 3.1 70B in FP8, TP 1 to 8",
        ("fp8_mfu", "seq_us", "step_ms", *FRONT_END),
        Served("vllm", "llama-3.1-70b", "fp8"),
        server=BUDGET_AND_SHARE,
        version=3,
    ),
    _served(
        "trtllm-h100",
        "h100-sxm",
        "TensorRT-LLM 1.0.0rc3",
        "Llama 3.1 8B in bf16, TP 1 to 8",
        SERVED,
        Served("trtllm", "llama-3.1-8b", "bf16"),
        version=3,
    ),
    _served(
        "sglang-h100",
        "h100-sxm",
        "SGLang 0.5.1 and 0.5.8",
        "Qwen3 32B in bf16, TP 1 to 8",
        (*SERVED, *FRONT_END),
        Served("sglang", "qwen3-32b", "bf16"),
        server=BUDGET_AND_SHARE,
        version=3,
    ),
    _served(
        "vllm-h100-gpt-oss",
        "h100-sxm",
        "vLLM (0.18.0 and undated)",
        "gpt-oss 120b, MXFP4 experts, TP 2 to 8",
        (*ROUTED, "expert_bandwidth_share", "expert_mfu", *FRONT_END),
        Served("vllm", "gpt-oss-120b", "fp4"),
        server=BUDGET_AND_SHARE,
        version=2,
    ),
    _served(
        "vllm-h200-gpt-oss",
        "h200-sxm",
        "vLLM (0.18.0 and undated)",
        "gpt-oss 120b, MXFP4 experts, TP 1 to 8",
        (*ROUTED, "expert_bandwidth_share", "expert_mfu", *FRONT_END),
        Served("vllm", "gpt-oss-120b", "fp4"),
        server=BUDGET_AND_SHARE,
        version=2,
    ),
    _served(
        "vllm-h200-minimax-m2.5",
        "h200-sxm",
        "vLLM 0.16.0 and 0.18.0",
        "MiniMax-M2.5 in FP8, TP 4 and 8",
        ("seq_us", "expert_layer_us", *FRONT_END),
        Served("vllm", "minimax-m2.5", "fp8"),
        server=BUDGET_AND_SHARE,
        version=2,
    ),
    _served(
        "trtllm-h200-gpt-oss",
        "h200-sxm",
        "TensorRT-LLM (undated)",
        "gpt-oss 120b, MXFP4 experts, TP 1 to 8",
        (*ROUTED, "expert_bandwidth_share", "expert_mfu"),
        Served("trtllm", "gpt-oss-120b", "fp4"),
    ),
    _served(
        "trtllm-h100-qwen3-235b",
        "h100-sxm",
        "TensorRT-LLM 1.0.0rc3",
        "Qwen3 235B-A22B in FP8, whole experts on 4 and 8 GPUs",
        ROUTED,
        Served("trtllm", "qwen3-235b-a22b", "fp8", whole=True),
    ),
    _served(
        "trtllm-h200-deepseek",
        "h200-sxm",
        "TensorRT-LLM (undated)",
        "DeepSeek V3 and R1 in FP8, TP 8",
        ROUTED,
        Served("trtllm", "deepseek-v3", "fp8"),
    ),
    _served(
        "sglang-h200-deepseek",
        "h200-sxm",
        "SGLang 0.5.9",
        "DeepSeek V3 and R1 in FP8, TP 8",
        ("seq_us", "expert_layer_us", *FRONT_END),
        Served("sglang", "deepseek-v3", "fp8"),
        server=BUDGET_AND_SHARE,
        version=2,
    ),
    _served(
        "sglang-h200-qwen3-235b",
        "h200-sxm",
        "SGLang 0.5.6.post2",
        "Qwen3 235B-A22B in FP8, TP 2 and 4, 2 to 9 clients",
        ("expert_layer_us", *FRONT_END),
        Served("sglang", "qwen3-235b-a22b", "fp8"),
        server=BUDGET_AND_SHARE,
        version=2,
    ),
)
