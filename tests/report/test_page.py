"""The page of a result: self-contained, escaped, warnings first, the same from a run and from its folder."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import simqueue as sq
from simqueue.cli import run_command
from simqueue.errors import InputError
from simqueue.report.document import Cells, Document, Items, Paragraph
from simqueue.report.html import html
from simqueue.report.markdown import markdown
from simqueue.report.page import result_page
from simqueue.results.result import Result
from simqueue.results.stored import read_result

TOY: dict[str, Any] = {
    "name": "toy",
    "seed": 7,
    "step_time": {"kind": "constant", "seconds": 0.01},
    "kv_cache": {"blocks": 40},
    "workload": {
        "requests": [
            {"id": "<b>bold</b>", "arrival_s": 0, "prompt_tokens": 16, "output_tokens": 5},
            {"id": "big", "arrival_s": 0, "prompt_tokens": 10_000, "output_tokens": 5},
            {"id": "last", "arrival_s": 0.5, "prompt_tokens": 16, "output_tokens": 5},
        ]
    },
    "policies": {"static": {"scheduler": "static"}, "chunked": {"scheduler": "chunked"}},
}


@pytest.fixture(scope="module")
def result() -> Result:
    """Two policies, one request rejected."""
    return sq.run(TOY)


@pytest.fixture(scope="module")
def page(result: Result) -> str:
    """Its page."""
    return html(result_page(result))


def test_the_page_has_what_was_run(result: Result, page: str) -> None:
    """Name, version, seed, tables, figures and the resolved scenario are on it."""
    assert "<h1>simqueue: toy</h1>" in page
    assert f"simqueue {result.version}, seed 7" in page
    assert page.count("<table>") >= 2
    assert page.count("<figure>") == 7
    assert "&#34;kv_cache&#34;" in page


def test_the_page_loads_nothing(page: str) -> None:
    """No script, no link, no address but of pictures inside the page; the page forbids the rest."""
    sources = re.findall(r'(?:src|href|url)\s*[=(]\s*"?([^"\s)>]+)', page)
    assert sources
    assert all(source.startswith("data:image/") for source in sources)
    assert "<script" not in page
    assert "default-src 'none'" in page


def test_warnings_come_first() -> None:
    """A warning stands before every table and figure."""
    text = html(result_page(sq.run({**TOY, "warmup_s": 10})))
    assert 'class="warning"' in text
    assert text.index('class="warning"') < text.index("<table>")


def test_everything_is_escaped() -> None:
    """Markup in a title, a line, a cell or a caption is shown and not obeyed."""
    bad = "<script>alert(1)</script>"
    document = Document(bad, [Paragraph(bad), Items((bad,)), Cells((bad,), ((bad,),), caption=bad)])
    text = html(document)
    assert "<script" not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 7  # the title stands twice


def test_markdown_tables_stand_bars() -> None:
    """A bar in a cell does not end it."""
    text = markdown(Document("t", [Cells(("a", "b"), (("x|y", "1"),), numeric=(1,))]), "figures")
    assert text == "# t\n\n| a | b |\n| --- | ---: |\n| x\\|y | 1 |\n"


def test_the_folder_gives_the_page_of_the_run(result: Result, tmp_path: Path) -> None:
    """Read back, the same tables and warnings make the same comparison; the times of last tokens are not stored."""
    result.save(tmp_path / "r", figures=False)
    stored = read_result(tmp_path / "r")
    assert (stored.policies, stored.warnings, stored.seed, stored.version) == (
        result.policies, result.warnings, result.seed, result.version,
    )  # fmt: skip
    fresh, again = (result_page(one).blocks for one in (result, stored))
    assert [b for b in fresh if isinstance(b, Cells)] == [b for b in again if isinstance(b, Cells)]
    assert len(fresh) == len(again)


def test_a_folder_without_a_result_is_refused(tmp_path: Path) -> None:
    """A folder that holds something else is an error that names it."""
    with pytest.raises(InputError, match="contains no result of simqueue"):
        read_result(tmp_path)


def test_an_empty_run_has_a_page() -> None:
    """Without served requests there are still tables, figures, and the reason of the rejection."""
    text = html(result_page(sq.run({**TOY, "workload": {"requests": TOY["workload"]["requests"][1:2]}})))
    assert "needs 626 blocks, the pool has 40" in text
    assert text.count("<figure>") == 7


def test_the_command_takes_a_scenario_or_a_folder(
    result: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both ways a page is written and named; flags for a run do not go with a folder."""
    result.save(tmp_path / "r", figures=False)
    assert run_command(["report", str(tmp_path / "r"), "-o", str(tmp_path / "a.html")]) == 0
    assert f"written: {tmp_path / 'a.html'}" in capsys.readouterr().out
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert run_command(["report", str(tmp_path / "r"), "--seed", "3"]) == 2
    assert "--set, --seed and --replications need a scenario" in capsys.readouterr().err
    assert run_command(["report", str(tmp_path / "r"), "-o", "page.txt"]) == 2
    assert "must end in .html" in capsys.readouterr().err


BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless browser; where SIMQUEUE_BROWSER=required it must be there."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        if os.environ.get("SIMQUEUE_BROWSER") == "required":
            pytest.fail("SIMQUEUE_BROWSER=required, but there is no chromium, or playwright is not installed")
        pytest.skip("needs chromium and playwright; SIMQUEUE_BROWSER=required makes this an error")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_it(browser: Any, page: str, tmp_path: Path, scheme: str) -> None:
    """In both colour schemes: tables and loaded figures, no error in the console, no request but for the file."""
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    seen, said = [], []
    tab = browser.new_page(color_scheme=scheme, viewport={"width": 1200, "height": 900})
    tab.on("request", lambda request: seen.append(request.url))
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto(file.as_uri())
    assert tab.locator("h1").inner_text() == "simqueue: toy"
    assert tab.locator("table").first.is_visible()
    assert tab.locator("table tbody tr").count() > 20
    widths = tab.locator("figure img").evaluate_all("images => images.map(i => i.complete ? i.naturalWidth : 0)")
    assert len(widths) == 7
    assert all(width > 100 for width in widths)
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "nothing sticks out"
    dark = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark == ("rgb(22, 24, 27)" if scheme == "dark" else "rgb(255, 255, 255)")
    assert said == []
    assert [url for url in seen if not url.startswith("data:")] == [file.as_uri()]
    tab.close()
