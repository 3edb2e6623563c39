"""Speed and memory of the simulation on the machine at hand; ``python -m benchmarks --help``.

What is measured is the installed package, compiled or not, and only without one the sources beside this folder.
"""

import sys

sys.path.append(sys.path.pop(0))  # `python -m` puts the folder it is called in before everything that is installed
