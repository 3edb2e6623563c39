"""From a scenario to its result: parts are built, policies are run."""

from simqueue.experiment.runner import run

__all__ = ["run"]
