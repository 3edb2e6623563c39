"""sglang-router and vllm-router, a fork of it: policies by version."""

from simqueue.routing.gateway.pairs import PairRouter
from simqueue.routing.gateway.products import SglangRouter, VllmRouter

__all__ = ["PairRouter", "SglangRouter", "VllmRouter"]
