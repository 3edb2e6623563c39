"""Pooled samples of several runs: what numpy gives for all of them, read once; and the classes of their requests."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simqueue.results.classes import RequestClasses
from simqueue.results.latencies import NO_EXTRAS
from simqueue.results.samples import Gaps, RunSamples, Samples

LABELS = [None, "chat", "chat/gold", "chat/gold/x", "chatty", "batch/a"]


class Counted:
    """The recording of a run without requests, which counts how often its gaps are read."""

    def __init__(self, gaps_s: list[float]) -> None:
        self.requests: dict[str, Any] = {"request_class": np.empty(0, dtype=object)}
        self.gaps = self
        self.read = 0
        self._part = {"gap_s": np.array(gaps_s), "tokens": np.ones(len(gaps_s), dtype=np.int64)}

    def parts(self, *_names: str) -> list[dict[str, Any]]:
        """Return the only part."""
        self.read += 1
        return [self._part]


def test_windowed_and_whole_rows_read_the_gaps_once_for_all_percentiles() -> None:
    """After the first percentile of ITL no other reads the gaps; each is that of all gaps together."""
    runs: list[Any] = [Counted([0.01, 0.02, 0.5]), Counted([0.03, 0.04])]
    levels = (50.0, 95.0, 99.0)
    gaps = Gaps(runs, levels)
    whole, windowed = (
        Samples([RunSamples(run, None, "all", NO_EXTRAS) for run in runs], levels, gaps) for _ in range(2)
    )
    first = whole.percentile("median_itl_ms")
    read = [run.read for run in runs]
    again = [samples.percentile(f"p{q}_itl_ms") for samples in (whole, windowed) for q in (95, 99)]
    all_ms = 1000 * np.array([0.01, 0.02, 0.5, 0.03, 0.04])
    expected = np.percentile(all_ms, levels).tolist()
    assert [first, *again] == [*expected, *expected[1:]]
    assert [run.read for run in runs] == read
    assert windowed.percentile("p90_itl_ms") == np.percentile(all_ms, 90)  # one that was not named


def test_percentiles_computed_together_are_those_of_numpy_one_by_one(record: Any) -> None:
    """Bit for bit, over the requests of both runs."""
    generator = np.random.default_rng(5)
    both_s = [generator.exponential(size=37), generator.exponential(size=11)]
    runs = [
        record([{"first_token_s": one, "finish_s": one, "output_tokens": 1} for one in ttft_s.tolist()], end_s=99.0)
        for ttft_s in both_s
    ]
    samples = Samples([RunSamples(run, None, "all", NO_EXTRAS) for run in runs], (50.0, 95.0, 99.9))
    for name, q in (("median", 50), ("p95", 95), ("p99.9", 99.9), ("p1", 1)):
        assert samples.percentile(f"{name}_ttft_ms") == np.percentile(1000 * np.concatenate(both_s), q)


@given(st.lists(st.sampled_from(LABELS), max_size=12))
def test_a_class_has_its_requests_and_those_of_its_inner_classes(labels: list[str | None]) -> None:
    """By the rule of names alone. The classes are the labels that occur, and what precedes the first slash of one."""
    classes = RequestClasses(np.array(labels, dtype=object))
    outer = {label.split("/")[0] for label in labels if label is not None}
    expected = {*labels, *outer} if outer else set()
    masks = dict(classes.masks())
    assert masks.pop("all").tolist() == [True] * len(labels)
    assert set(masks) == expected
    for name in LABELS:
        found = classes.mask(name)
        belongs = [
            label == name or (None not in (name, label) and str(label).startswith(f"{name}/")) for label in labels
        ]
        assert (None if found is None else found.tolist()) == (belongs if name in expected else None)
    assert all(mask.tolist() == classes.mask(name).tolist() for name, mask in masks.items())  # type: ignore[union-attr]
