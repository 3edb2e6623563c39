"""Scenario keys of LiteLLM's router, by LiteLLM's names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from simqueue.routing.base import View
from simqueue.settings import Count, Settings

Strategy = Literal["simple-shuffle", "least-busy", "latency-based-routing", "usage-based-routing-v2"]


class Deployment(Settings):
    """What LiteLLM is told of a deployment."""

    weight: float | None = Field(None, ge=0, description="share of the requests")
    rpm: Count | None = Field(None, ge=0, description="requests per minute: a limit, and for simple-shuffle a weight")
    tpm: Count | None = Field(None, ge=0, description="tokens per minute: a limit, and for simple-shuffle a weight")


class LatencyArgs(Settings):
    """Keys of latency-based-routing."""

    ttl: float = Field(
        3600.0,
        gt=0,
        description="all samples are forgotten when none has been added for this long",
        json_schema_extra={"unit": "s"},
    )
    lowest_latency_buffer: float = Field(
        0.0, ge=0, description="a deployment whose mean is up to this share above the lowest is chosen as well"
    )
    ttft_percentile: float | None = Field(
        None, gt=0, le=1, description="for streams, this percentile of the times to the first token; null: their mean"
    )
    max_latency_list_size: Count = Field(10, ge=1, description="samples of a deployment that are kept")


class LiteLlmSettings(Settings):
    """Keys of `LiteLlm`."""

    version: Literal["1.110.2"] = Field("1.110.2", description="version of LiteLLM whose rules are followed")
    routing_strategy: Strategy = Field(
        "simple-shuffle",
        description="simple-shuffle: at random; least-busy: the fewest requests in flight; latency-based-routing: the "
        "lowest mean time; usage-based-routing-v2: the fewest tokens in this minute",
    )
    routing_strategy_args: LatencyArgs = Field(
        LatencyArgs(), description="of latency-based-routing; the other strategies have none"
    )
    stream: bool = Field(
        True,
        description="whether clients ask for streams: latency-based-routing then compares times to the first token",
    )
    litellm_params: dict[str, Deployment] = Field(
        {}, description="weights and limits of the replicas, by the name of a replica or of a group"
    )

    def of(self, replica: View) -> Deployment:
        """Return what is known of a replica: by its own name, else by its group."""
        given = self.litellm_params
        return (given.get(replica.name) or given.get(replica.group) or _UNKNOWN) if given else _UNKNOWN


_UNKNOWN = Deployment()
