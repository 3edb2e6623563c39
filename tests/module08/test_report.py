"""The committed report of the module is what its command writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simqueue.experiment.runner import CHECK_SWITCH
from simqueue.report.document import Document
from simqueue.report.markdown import markdown
from studies.module08.__main__ import main
from studies.module08.recorded import read
from studies.module08.report import BATCH_SIZES, BENCH_FILE, report

REPORTS = Path(__file__).parents[2] / "reports"
COMMAND = "run: make module08"


@pytest.fixture(scope="module")
def document() -> Document:
    """Return the report, made from the committed measurements of the bench; its long runs leave out the checks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(CHECK_SWITCH)
        return report(REPORTS / BENCH_FILE)


@pytest.mark.slow
def test_the_committed_text_is_current(document: Document) -> None:
    """The command writes reports/module08.md with the same numbers and verdicts."""
    assert (REPORTS / "module08.md").read_text(encoding="utf-8") == markdown(document, "module08"), COMMAND


@pytest.mark.slow
def test_every_figure_is_committed(document: Document) -> None:
    """Each figure of the report is committed as PNG and SVG, and the page has as many pictures."""
    for picture in document.pictures:
        for kind in ("png", "svg"):
            assert (REPORTS / "module08" / f"{picture.name}.{kind}").stat().st_size > 1000, picture.name
    page = (REPORTS / "module08.html").read_text(encoding="utf-8")
    assert page.count("<figure>") == len(document.pictures)


def test_the_page_has_the_text_of_the_markdown() -> None:
    """The committed HTML has every heading of the committed Markdown, and loads nothing."""
    text = (REPORTS / "module08.md").read_text(encoding="utf-8")
    page = (REPORTS / "module08.html").read_text(encoding="utf-8")
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        assert f">{heading}</h" in page
    assert all(found.startswith("data:") for found in re.findall(r'src="([^"]*)', page))


def test_the_committed_measurements_are_of_the_modules_bench() -> None:
    """The file has both policies at both batch sizes, with the calls and tokens of the reference."""
    found = {(run.policy, run.batch_size): (run.generated, run.calls) for run in read(REPORTS / BENCH_FILE).runs}
    assert found == {
        ("pad_to_max", 8): (11_176, 2395),
        ("continuous", 8): (11_176, 1707),
        ("pad_to_max", 32): (11_176, 930),
        ("continuous", 32): (11_176, 752),
    }
    assert {size for _, size in found} == set(BATCH_SIZES)


def test_the_command_says_how_to_install_torch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bench command without torch is bad input: one line that says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    assert main(["bench"]) == 2
    assert capsys.readouterr().err == (
        "error: torch is not installed; in a checkout of simqueue: pip install '.[torch]'\n"
    )
