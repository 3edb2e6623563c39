"""All comparisons are made once per process, for all tests."""

from pathlib import Path

import pytest

from studies.fidelity.report import Findings, find


@pytest.fixture(scope="session")
def found() -> Findings:
    """Return every comparison of the repository's measurements."""
    return find(Path(__file__).parents[2] / "data" / "groundtruth")
