"""Laws that hold on every sample path, whatever the traffic and the policy: tested as equalities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

ITERATION_POLICIES = ("continuous", "separate", "chunked", "chunked_capped")


def per_policy(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the parts of a table, one a policy."""
    return [(str(policy), part) for policy, part in table.groupby("policy", sort=False)]


def step_sums(steps: pd.DataFrame) -> tuple[int, int, int, int]:
    """Return steps, decode tokens, prefill tokens and context tokens of a steps table, rows of n steps unfolded.

    The context of a row is that of its first step and grows by one token a decode: an arithmetic series.
    """
    n, decodes = steps["repeat"], steps["decode_seqs"]
    context = n * steps["context_tokens"] + decodes * n * (n - 1) // 2
    return int(n.sum()), int((n * decodes).sum()), int(steps["prefill_tokens"].sum()), int(context.sum())


def priced_s(step_time: dict[str, Any], sums: tuple[int, int, int, int]) -> float:
    """Return a steps + b decode tokens + c prefill tokens + d context tokens."""
    prices = [step_time[f"{name}_s"] for name in ("overhead", "per_decode", "per_prefill_token", "per_context_token")]
    return float(np.dot(prices, sums))


def test_busy_time_is_what_the_steps_cost(random_scenario: dict[str, Any], play: Any) -> None:
    """Rate conservation: the time in steps is a steps + b decode tokens + c prefill tokens + d context tokens."""
    result = play(random_scenario)
    for policy, steps in per_policy(result.steps):
        if policy in ITERATION_POLICIES:  # waves cost their padding too, which is in no column
            expected_s = priced_s(random_scenario["step_time"], step_sums(steps))
            assert steps["duration_s"].sum() == pytest.approx(expected_s, rel=1e-9), policy


def test_busy_time_of_waves_without_padding(random_scenario: dict[str, Any], play: Any) -> None:
    """Where all requests of a static server are alike no row is padded, and the same identity holds."""
    alike = [{**row, "prompt_tokens": 100, "output_tokens": 20} for row in random_scenario["workload"]["requests"]]
    policies = {"static": random_scenario["policies"]["static"]}
    result = play({**random_scenario, "workload": {"requests": alike}, "policies": policies})
    expected_s = priced_s(random_scenario["step_time"], step_sums(result.steps))
    assert result.steps["duration_s"].sum() == pytest.approx(expected_s, rel=1e-9)
    assert result.summary_rows[0]["idle_slot_share"] == 0


def test_the_work_follows_from_the_requests(random_scenario: dict[str, Any], play: Any) -> None:
    """Without preemption the steps hold O - 1 decodes a request, its prompt once, and contexts P + 1 to P + O - 1."""
    result = play({**random_scenario, "kv_cache": {"block_size": 16, "blocks": 1000}})
    for policy, requests in per_policy(result.requests):
        assert requests["preemptions"].sum() == 0
        prompt, output = requests["prompt_tokens"], requests["output_tokens"]
        context = (output - 1) * prompt + output * (output - 1) // 2
        _, decodes, prefills, contexts = step_sums(result.steps[result.steps["policy"] == policy])
        assert (decodes, prefills, contexts) == ((output - 1).sum(), prompt.sum(), context.sum()), policy


def test_preempted_work_is_done_again_and_nothing_else(random_scenario: dict[str, Any], play: Any) -> None:
    """Tokens computed = P + O - 1 a request, and what was recomputed; tokens emitted = outputs, each once."""
    result = play({**random_scenario, "kv_cache": {"block_size": 16, "blocks": 20}})
    for policy, requests in per_policy(result.requests):
        if policy not in ITERATION_POLICIES:
            continue
        assert requests["preemptions"].sum() > 0, "the pool is meant to be short"
        _, decodes, prefills, _ = step_sums(result.steps[result.steps["policy"] == policy])
        asked = (requests["prompt_tokens"] + requests["output_tokens"] - 1).sum()
        assert decodes + prefills == asked + requests["recomputed_tokens"].sum(), policy
        assert requests["tokens_emitted"].tolist() == requests["output_tokens"].tolist()


def number_inside(requests: pd.DataFrame) -> tuple[list[float], list[int]]:
    """Return the step function N(t) from arrivals and departures: its jump times, and its height from each on."""
    changes = sorted([(t, 1) for t in requests["arrival_s"]] + [(t, -1) for t in requests["finish_s"]])
    times: list[float] = []
    heights: list[int] = []
    inside = 0
    for time_s, change in changes:
        inside += change
        if times and times[-1] == time_s:
            heights[-1] = inside
        else:
            times.append(time_s)
            heights.append(inside)
    return times, heights


def test_little_on_the_path(random_scenario: dict[str, Any], play: Any) -> None:
    """The area under N(t), rebuilt from arrivals and departures, is the time that all requests spent inside."""
    result = play(random_scenario)
    for policy, requests in per_policy(result.requests):
        assert (requests["status"] == "finished").all()
        times, heights = number_inside(requests)
        area_s = sum(height * (end - start) for height, start, end in zip(heights, times, times[1:], strict=False))
        assert heights[-1] == 0
        assert area_s == pytest.approx(requests["e2el_ms"].sum() / 1000, rel=1e-9), policy
        summary = next(row for row in result.summary_rows if row["policy"] == policy)
        assert summary["max_concurrent_requests"] == max(heights)


def test_every_step_sees_everybody_who_is_inside(random_scenario: dict[str, Any], play: Any) -> None:
    """At the start of a step, running + waiting is N(t) as the requests tell it: two accounts of the same number."""
    result = play(random_scenario)
    for policy, requests in per_policy(result.requests):
        times, heights = number_inside(requests)
        steps = result.steps[result.steps["policy"] == policy]
        seen = steps["running"] + steps["waiting"]
        there = [heights[np.searchsorted(times, start_s, side="right") - 1] for start_s in steps["start_s"]]
        assert seen.tolist() == there, policy


def test_the_server_is_never_idle_while_somebody_is_inside(random_scenario: dict[str, Any], play: Any) -> None:
    """No policy here idles while requests are in the system: busy time = the time during which N(t) > 0."""
    result = play(random_scenario)
    for policy, requests in per_policy(result.requests):
        times, heights = number_inside(requests)
        occupied_s = sum(end - start for height, start, end in zip(heights, times, times[1:], strict=False) if height)
        steps = result.steps[result.steps["policy"] == policy]
        assert steps["duration_s"].sum() == pytest.approx(occupied_s, rel=1e-9), policy
