"""The endpoint picker (EPP) of llm-d, version v0.8.0."""

from simqueue.routing.llmd.router import LlmD

__all__ = ["LlmD"]
