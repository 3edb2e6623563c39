"""Speed and memory of the simulation on this machine; see ``python -m benchmarks --help``.

They measure the installed package, compiled or not; if there is none, the sources beside this folder.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

if sys.path[0] == str(ROOT):  # `python -m` puts the current folder before the installed packages
    sys.path.append(sys.path.pop(0))
