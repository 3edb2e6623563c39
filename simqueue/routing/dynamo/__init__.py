"""NVIDIA Dynamo's routers, version 1.6.1."""

from simqueue.routing.dynamo.router import Dynamo

__all__ = ["Dynamo"]
