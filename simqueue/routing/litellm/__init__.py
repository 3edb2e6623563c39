"""The router of LiteLLM, version 1.110.2."""

from simqueue.routing.litellm.router import LiteLlm

__all__ = ["LiteLlm"]
