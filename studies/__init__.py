"""Studies made with simqueue, run from the repository: ``python -m studies.fidelity``, ``python -m studies.module08``.

They read the repository's measurements (`data/`) and write its reports (`reports/`), so they are not part of the
installed package. They use the installed package if there is one, and otherwise the sources beside this folder.

The scripts in ``studies/experiments`` are run one by one, as in ``python studies/experiments/erlang_c.py``.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

if sys.path[0] == str(ROOT):  # `python -m` puts the current folder before the installed packages
    sys.path.append(sys.path.pop(0))
