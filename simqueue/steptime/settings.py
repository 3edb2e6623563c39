"""The `step_time` key of a scenario: constant, linear, roofline or a measured table.

This module has the keys only; `simqueue.steptime.build` builds the models.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from simqueue.settings import Settings, invalid
from simqueue.steptime.preset import PRESETS, Preset, is_file, load_preset


class ConstantSettings(Settings):
    """``step_time: {kind: constant, seconds: 0.01}``."""

    kind: Literal["constant"] = "constant"
    seconds: float = Field(gt=0, le=1e6, description="duration of each step", json_schema_extra={"unit": "s"})


def _seconds(description: str) -> Any:
    return Field(default=0.0, ge=0, le=1e6, description=description, json_schema_extra={"unit": "s"})


class LinearSettings(Settings):
    """``step_time: {kind: linear, ...}``.

    A step takes ``overhead_s + per_prefill_token_s * prefill_tokens`` and, if it has decodes,
    ``+ decode_base_s + per_decode_s * decode_seqs + per_context_token_s * context_tokens``.
    Every step must take time: `overhead_s` must be positive, or both `per_prefill_token_s` and one of `decode_base_s`
    and `per_decode_s`.
    """

    kind: Literal["linear"] = "linear"
    overhead_s: float = _seconds("fixed time per step")
    per_prefill_token_s: float = _seconds("time per prompt token computed in the step, including padding")
    decode_base_s: float = _seconds("fixed time per step with decodes")
    per_decode_s: float = _seconds("time per decode")
    per_context_token_s: float = _seconds("time per token of context, summed over the decodes")

    @model_validator(mode="after")
    def _every_step_takes_time(self) -> Self:
        decode_takes_time = self.decode_base_s > 0 or self.per_decode_s > 0
        if not (self.overhead_s > 0 or (self.per_prefill_token_s > 0 and decode_takes_time)):
            raise invalid(
                "a step could take no time: overhead_s must be positive, or both per_prefill_token_s and one of "
                "decode_base_s and per_decode_s",
            )
        return self


class RooflineSettings(Settings):
    """``step_time: {kind: roofline, preset: ideal}``; `bandwidth_share` and `mfu` override the preset's values."""

    kind: Literal["roofline"] = "roofline"
    preset: str = Field(
        default="ideal",
        description="a name from `simqueue list presets`, or a YAML file written by `simqueue calibrate`",
    )
    server: Literal["as measured"] | None = Field(
        default=None,
        description="as measured: the policy has the token budget, the seats, the memory share and the front end of "
        "the server that the preset was fitted to, where its own keys do not say otherwise; null: it has its own",
    )
    bandwidth_share: float | None = Field(
        default=None, ge=0.001, le=1, description="share of the peak bandwidth that is reached; default: the preset's"
    )
    mfu: float | None = Field(
        default=None,
        ge=0.001,
        le=1,
        description="model FLOPs utilisation: share of the dense peak that is reached; default: the preset's",
    )
    expert_parallel: bool = Field(
        default=False,
        description="whether each GPU has whole experts of a mixture of experts, as with vLLM's "
        "--enable-expert-parallel, instead of a share of every expert; a step then waits for the busiest GPU",
    )

    @field_validator("preset")
    @classmethod
    def _known(cls, preset: str) -> str:
        if not is_file(preset) and preset not in PRESETS.names():
            raise invalid(str(PRESETS.unknown(preset)))
        return preset

    @property
    def is_chosen(self) -> bool:
        """Whether the preset, or one of its values, was written down."""
        return bool(self.model_fields_set & {"preset", "bandwidth_share", "mfu"})

    def shares(self, base_dir: Path = Path()) -> tuple[float, float]:
        """Return `bandwidth_share` and `mfu`: the given values, else the preset's."""
        return self._shares_with(load_preset(self.preset, base_dir))

    def _shares_with(self, preset: Preset) -> tuple[float, float]:
        values = preset.coefficients
        return (
            values.bandwidth_share if self.bandwidth_share is None else self.bandwidth_share,
            values.mfu if self.mfu is None else self.mfu,
        )

    def resolved(self, base_dir: Path = Path()) -> RooflineSettings:
        """Return the same settings with both shares set."""
        bandwidth_share, mfu = self.shares(base_dir)
        return self.model_copy(update={"bandwidth_share": bandwidth_share, "mfu": mfu})


class TableSettings(Settings):
    """``step_time: {kind: table, path: steps.csv}``.

    The file has the columns ``decode_seqs``, ``context_tokens`` (mean per decode), ``prefill_tokens`` and ``ms``, and
    one row for every combination of the values in each column; without decodes, one context is enough. Times between
    the points are interpolated linearly. Cached tokens of prompts do not count.
    """

    kind: Literal["table"] = "table"
    path: str = Field(min_length=1, description="CSV file with the grid")
    outside: Literal["refuse", "warn"] = Field(
        default="refuse",
        description="refuse: a step outside the grid ends the run; warn: it is extrapolated linearly, with a warning",
    )


StepTimeKinds = ConstantSettings | LinearSettings | RooflineSettings | TableSettings

StepTimeSettings = Annotated[StepTimeKinds, Field(discriminator="kind")]
"""The `step_time` key; `kind` selects the class."""

StepTimeFactor = Annotated[float, Field(ge=0.001, le=1000)]
"""The `step_time_factor` key: far beyond the errors of any model, and no step becomes so short that it is lost."""
