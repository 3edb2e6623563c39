"""Files and folders that commands write: reserved before the work, written beside their target, renamed at the end."""

from simqueue.outputs.outputs import Outputs, reserved_file, reserved_folder
from simqueue.outputs.place import Place

__all__ = ["Outputs", "Place", "reserved_file", "reserved_folder"]
