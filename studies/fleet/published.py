"""Published measurements of routers, with their sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from studies.fleet.shared import Outcome, Stage


@dataclass(frozen=True, slots=True)
class Rung:
    """One rate of a ladder: output and mean TTFT of a plain Kubernetes service and of llm-d.

    Attributes
    ----------
    stage : Stage
    plain, routed : tuple of float
        Output tokens/s, and seconds.
    """

    stage: Stage
    plain: tuple[float, float]
    routed: tuple[float, float]


VLLM_STAGE: Final = Stage(60.0, 1500)
VLLM: Final[Mapping[str, Outcome]] = {
    "round_robin": Outcome(5.7306, 5362.16, 34.9145, 70.42),
    "llm_d": Outcome(14.4123, 13574.37, 0.1203, 67.66),
}
"""llm-d/llm-d, pull request 722, and the report in guides/inference-scheduling/README.md: the last of 17 stages."""

SGLANG: Final = (
    Rung(Stage(10.0, 200), (4377, 0.926), (5013, 0.213)),
    Rung(Stage(20.0, 760), (5799, 26.500), (9439, 0.529)),
    Rung(Stage(30.0, 750), (4967, 34.295), (9976, 0.759)),
)
"""llm-d/llm-d, pull request 1643. It does not tell the stages; their durations are those of the run with vLLM."""

ONE_WORKER_TTFT_MS: Final[Mapping[str, float]] = {"round_robin": 627, "hits": 1617}
"""sgl-project/sglang, issue 21199: about this, of `round_robin` and of `cache_aware`."""
