"""The study of published routers: its traffic, what clients saw, and its page from few requests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from studies.fleet import __main__ as command
from studies.fleet import shared
from studies.fleet.shared import Stage, outcome_of, rows


def test_the_traffic_is_that_of_the_benchmark() -> None:
    """Each of the 750 prompts comes once in the warm-up and twice in the stage; five sixths are those of its group."""
    made = list(rows(Stage(60.0, 1500)))
    prompts = [tuple(row["hash_ids"]) for row in made]
    assert set(Counter(prompts[:750]).values()) == {1}
    assert set(Counter(prompts[750:]).values()) == {2}
    assert set(prompts[:750]) == set(prompts[750:])
    by_group = Counter(prompt[:5] for prompt in prompts[:750])
    assert (len(by_group), set(by_group.values())) == (150, {5})
    assert len({one for prompt in prompts for one in prompt}) == 150 * 5 + 750
    stage_s = (made[-1]["timestamp"] - made[750]["timestamp"]) / 1000
    assert stage_s == pytest.approx(1500 / 60, rel=4 / 1500**0.5)  # four standard errors


def test_prompts_have_as_many_blocks_as_their_length_needs() -> None:
    """The last block is not longer than the others."""
    assert all(len(row["hash_ids"]) == -(-row["input_length"] // shared._BLOCK) for row in rows(Stage(1.0, 5), 3))


def test_what_clients_saw() -> None:
    """Two requests after the warm-up: 3 and 9 tokens in 8 s, TTFT of 1 and 3 s, TPOT of 2 and 0.5 s."""
    requests = {
        "arrival_s": [0.0, 10.0, 11.0],
        "first_token_s": [5.0, 11.0, 14.0],
        "last_token_s": [50.0, 15.0, 18.0],
        "output_tokens": [9, 3, 9],
    }
    found = outcome_of(requests, 10.0)
    assert found.throughput_rps == pytest.approx(2 / 8)
    assert found.output_tokens_per_s == pytest.approx(12 / 8)
    assert found.ttft_s == pytest.approx(2)
    assert found.tpot_ms == pytest.approx(1000 * (2 + 0.5) / 2)


def test_the_page_is_written(tmp_path: Path) -> None:
    """The page names its command, has a section for each measurement, and its figure is there."""
    page, figure = command.write_routing(tmp_path, small=True)
    text = page.read_text(encoding="utf-8")
    assert "python -m studies.fleet routing" in text
    assert len([line for line in text.splitlines() if line.startswith("## ")]) == 4
    assert f"({figure.relative_to(tmp_path)})" in text
    assert figure.stat().st_size > 10_000
