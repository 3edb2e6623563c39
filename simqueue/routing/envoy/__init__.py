"""The load balancing policies of Envoy."""

from simqueue.routing.envoy.router import Envoy

__all__ = ["Envoy"]
