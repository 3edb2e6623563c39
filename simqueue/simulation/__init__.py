"""The SimPy core: requests, scheduler and GPU as processes and resources."""

from simqueue.simulation.options import RunOptions
from simqueue.simulation.recording import Recording
from simqueue.simulation.simulate import Simulation

__all__ = ["Recording", "RunOptions", "Simulation"]
