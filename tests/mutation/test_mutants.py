"""The mutation command's own parts: which faults it makes, and how they get into imported functions."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from .operators import Mutant, mutants_of
from .rooms import ROOMS
from .swap import Loaded

SOURCE = '''
"""Not changed."""
LIMIT = 3


class Gate:
    """Not changed."""

    def __init__(self, seats: int = 4) -> None:
        super().__init__()
        self.seats = seats
        self.taken = 0

    def enter(self, wanted: int) -> bool:
        """Not changed."""
        if wanted < 1 or self.taken + wanted > self.seats:
            raise ValueError(f"{wanted + 1} seats")
        self.taken += wanted
        return self.taken == self.seats
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a small source file."""
    path = tmp_path / "gate.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def changed_line(mutant: Mutant) -> tuple[str, str]:
    """Return the changed line, and its kind."""
    lines = zip(SOURCE.splitlines(), mutant.source().splitlines(), strict=True)
    (now,) = [after.strip() for before, after in lines if before != after]
    return now, mutant.kind


def test_every_small_fault_inside_functions_is_made_once(file: Path) -> None:
    """Comparisons, arithmetic, conditions, constants, returns and effects change; texts and defaults do not."""
    condition = "if wanted < 1 or self.taken + wanted > self.seats:"
    assert [changed_line(mutant) for mutant in mutants_of(file)] == [
        ("False and super().__init__()", "dropped call"),
        ("pass", "dropped statement"),
        ("pass", "dropped statement"),
        ("self.taken = 1", "constant"),
        ("if False or self.taken + wanted > self.seats:", "dropped condition"),
        (condition.replace("<", "<="), "comparison"),
        (condition.replace("<", ">="), "comparison"),
        (condition.replace("1", "2"), "constant"),
        (condition.replace("or", "and"), "boolean operator"),
        ("if wanted < 1 or False:", "dropped condition"),
        (condition.replace("+", "-"), "arithmetic"),
        (condition.replace(">", "<="), "comparison"),
        (condition.replace(">", ">="), "comparison"),
        ("pass", "dropped raise"),
        ("pass", "dropped statement"),
        ("self.taken -= wanted", "arithmetic"),
        ("return None", "return value"),
        ("return self.taken != self.seats", "comparison"),
    ]


def test_mutants_are_valid_python() -> None:
    """No mutant of the KV caches is a syntax error, which any test would notice."""
    for path in ROOMS["kvcache"].source_files():
        for mutant in mutants_of(path):
            compile(mutant.source(), str(path), "exec")


def test_mutant_changes_functions_that_are_already_imported(file: Path) -> None:
    """Objects made before, and methods bound before, do what the mutant says; the file stays as it is."""
    spec = importlib.util.spec_from_file_location("gate", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    enter = module.Gate(2).enter
    subtracted = next(mutant for mutant in mutants_of(file) if "self.taken -= wanted" in mutant.source())
    Loaded([file]).put(subtracted)
    assert not enter(1)
    assert not enter(1)
    assert enter.__self__.taken == -2
    assert file.read_text(encoding="utf-8") == SOURCE
