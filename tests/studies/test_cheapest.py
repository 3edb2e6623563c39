"""The study of the cheapest system: which answer its costs give, and its page from few requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simqueue.decisions.tuning.answer import Standing, Tuning
from simqueue.decisions.tuning.runs import Spent
from simqueue.experiment.model_error import PublishedError
from studies.decisions import cheapest
from studies.decisions.cheapest import Found, Size, answer


def tuning(cost: float | None) -> Tuning:
    """Return an answer that costs so much; None: no system keeps the limits."""
    one = Standing(1, {"fleet.replicas": 1, "max_num_batched_tokens": 512}, 1, cost or 1.0, "best" if cost else "open")
    rest: dict[str, Any] = {"confidence": 0.95, "zone": 0.02, "stopped": "", "spent": Spent(), "notes": (), "shown": 1}
    return Tuning("vllm", "limits", "USD per hour", "mean_e2el_ms", standings=(one,), has_best=bool(cost), **rest)


def found(fast: float | None, middle: float | None, slow: float | None) -> Found:
    """Return a system with what it costs where steps take less time, the time of the preset, and more."""
    return Found(PublishedError(0.1, "in range"), {1.0: tuning(middle), 0.9: tuning(fast), 1.1: tuning(slow)})


@pytest.mark.parametrize(
    ("rival", "said"),
    [
        (found(4.0, 4.0, 4.0), "no other system is as cheap within"),
        (found(3.0, 4.0, 4.0), "within the published error of the step times, B can be as cheap or cheaper"),
        (found(None, None, None), "no other system is as cheap within"),
        (found(2.0, None, None), "B can be as cheap or cheaper"),
    ],
)
def test_the_answer_says_whether_it_is_sure(rival: Found, said: str) -> None:
    """A costs 2 USD, 3 with longer steps: a rival that can cost 3 or less is one."""
    text = answer({"A": found(2.0, 2.0, 3.0), "B": rival})
    assert text.startswith("A is the cheapest: 2.00 USD per hour; ")
    assert said in text


def test_a_system_that_may_keep_nothing_is_never_sure() -> None:
    """If the best one fails with longer steps, every rival that can serve is as good."""
    assert "B can be" in answer({"A": found(2.0, 2.0, None), "B": found(9.0, 9.0, 9.0)})
    assert answer({"A": found(None, None, None)}) == "No system keeps the limits."


def test_the_page_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names its command, has a row for each system, and its figure is there."""
    few = {name: cheapest.SYSTEMS[name] for name in ("2 × H100", "H200")}
    monkeypatch.setattr(cheapest, "SYSTEMS", few)
    page, figure = cheapest.write(tmp_path, Size(replicas=(1,), budgets=(512,), end_row=300, replications=2), workers=1)
    text = page.read_text(encoding="utf-8")
    assert "python -m studies.decisions cheapest" in text
    assert all(f"\n| {name} | " in text for name in few)
    assert "| prefill and decode apart |" in text
    assert f"({figure.relative_to(tmp_path)})" in text
    assert figure.stat().st_size > 10_000
