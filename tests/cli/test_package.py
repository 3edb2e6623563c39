"""The names of the package `simqueue`."""

import subprocess
import sys

import pytest

import simqueue


def test_public_names_are_there() -> None:
    """Every public name can be imported, and `dir` lists it."""
    for name in simqueue.__all__:
        assert getattr(simqueue, name) is not None
    assert dir(simqueue) == sorted(simqueue.__all__)


def test_unknown_name() -> None:
    """An unknown name is an AttributeError, as for any module."""
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        _ = simqueue.runn


def test_import_alone_is_light() -> None:
    """Importing the package imports none of its parts."""
    code = "import sys, simqueue; print([m for m in sys.modules if m.startswith('simqueue.') or m == 'numpy'])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, encoding="utf-8")
    assert done.stdout == "[]\n"
