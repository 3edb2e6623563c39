"""Which sources are mutated, and which tests meet the mutants first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"


@dataclass(frozen=True)
class Room:
    """A group of sources, as glob patterns from the root, and the test folders that know it best, in order."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]

    def source_files(self) -> list[Path]:
        """Return the source files, in order of path."""
        return sorted({file for pattern in self.sources for file in ROOT.glob(pattern)})

    def owns(self, test: Path) -> bool:
        """Return whether a test file belongs to the room, or to one that knows it as well."""
        return test.parent.name in self.tests

    def test_folders(self, *, others: bool = True) -> list[Path]:
        """Return folders of tests: the room's own, then those that play whole runs, then the others."""
        if not others:
            return [TESTS / name for name in self.tests]
        names = dict.fromkeys((*self.tests, *WHOLE_RUNS))
        rest = sorted(folder.name for folder in TESTS.iterdir() if any(folder.glob("test_*.py")))
        return [TESTS / name for name in (names | dict.fromkeys(rest)) if (TESTS / name).is_dir()]


WHOLE_RUNS = ("schedulers", "golden", "properties", "fastpath", "engines", "cases", "theory", "clients")

ROOMS = {
    "kvcache": Room(("simqueue/kvcache/*.py",), ("kvcache",)),
    "schedulers": Room(("simqueue/schedulers/*.py",), ("schedulers", "simulation")),
    "simulation": Room(("simqueue/simulation/*.py",), ("simulation", "schedulers", "clients")),
    "routing": Room(("simqueue/routing/**/*.py",), ("routing",)),
    "linear": Room(("simqueue/steptime/linear.py", "simqueue/steptime/folding.py"), ("steptime",)),
}
