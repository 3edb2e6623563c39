"""Length distributions: how many tokens prompts and outputs have. `settings` is light, the other modules need numpy."""

from simqueue.workload.lengths.settings import LengthSettings

__all__ = ["LengthSettings"]
