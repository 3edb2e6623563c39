"""Static waves against an independent reference: a loop over waves, steps and rows that counts nothing twice."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given

from ..helpers.exact_times import CONSTANT, EXACT_LINEAR, TICK_S, UNIT_S
from ..helpers.profiles import examples
from .cases import Case, cases, static_keys
from .test_reference import outcome, recorded, step_rows
from .walk import KEYS, Asked, Guest, Step, pooled_gaps, rows


class Waves:
    """Plays a case of the static policy."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.keys = {"batch": "dynamic", "release": "wave_end", "emit": "as_made", "wave_timeout_s": None} | case.keys
        asked = [Asked(r.arrival_s, r.prompt_tokens, r.output_tokens, r.priority, r.deadline_s) for r in case.requests]
        self.coming = [Guest(one, i) for i, one in enumerate(asked) if one.arrival_s <= case.horizon_s]
        self.guests = list(self.coming)
        self.waiting: list[Guest] = []
        self.steps: list[Step] = []

    def run(self) -> Waves:
        """Play to the end or the horizon."""
        now_s = 0.0
        while now_s < self.case.horizon_s:
            self._let_in(now_s)
            start_s = self._start_s()
            wave = self._gather() if start_s <= now_s else []
            if wave:
                now_s = self._play(wave, now_s)
                continue
            later_s = [guest.asked.arrival_s for guest in self.coming]
            later_s += [start_s] if start_s > now_s else []
            now_s = min(later_s, default=math.inf)
        self._let_in(self.case.horizon_s)
        return self

    def _let_in(self, now_s: float) -> None:
        for guest in [guest for guest in self.coming if guest.asked.arrival_s <= now_s]:
            self.coming.remove(guest)
            if self.case.reject and self._blocks([guest]) > self.case.blocks:
                guest.finish_s = guest.asked.arrival_s
            else:
                self.waiting.append(guest)

    def _start_s(self) -> float:
        """From when on the next wave may start, as far as can be seen now."""
        if not self.waiting:
            return math.inf
        if self.keys["batch"] == "dynamic" or len(self.waiting) >= self.keys["max_num_seqs"]:
            return -math.inf
        timeout_s = self.keys["wave_timeout_s"]
        oldest_s = min(guest.asked.arrival_s for guest in self.waiting)
        return math.inf if timeout_s is None else oldest_s + timeout_s

    def _blocks(self, wave: list[Guest]) -> int:
        tokens = max(g.asked.prompt_tokens for g in wave) + max(g.asked.output_tokens for g in wave) - 1
        if self.case.contiguous and self.case.reserve_tokens:
            tokens = self.case.reserve_tokens
        return len(wave) * math.ceil(tokens / self.case.block_size)

    def _gather(self) -> list[Guest]:
        order = self.keys["order"]
        queue = self.waiting if order == "fcfs" else sorted(self.waiting, key=lambda guest: KEYS[order](guest.asked))
        wave: list[Guest] = []
        for guest in queue[: self.keys["max_num_seqs"]]:
            if self._blocks([*wave, guest]) > self.case.blocks:
                break
            wave.append(guest)
        self.waiting = [guest for guest in self.waiting if guest not in wave]
        return wave

    def _play(self, wave: list[Guest], now_s: float) -> float:
        """Play one wave; return when it ends, or infinity if the horizon comes first."""
        prompt_tokens = max(guest.asked.prompt_tokens for guest in wave)
        for guest in wave:
            guest.first_scheduled_s = now_s
        for number in range(1, max(guest.asked.output_tokens for guest in wave) + 1):
            self._let_in(now_s)
            alive = [guest for guest in wave if guest.asked.output_tokens >= number]
            step = Step(now_s, running=len(alive if self.keys["release"] == "own_end" else wave))
            step.waiting, step.blocks_used = len(self.waiting), self._blocks(wave)
            if number == 1:
                step.prefill_tokens = sum(guest.asked.prompt_tokens for guest in wave)
                step.prefill_seqs = len(wave)
                seconds = self._seconds(0, 0, len(wave) * prompt_tokens)
            else:
                step.decode_seqs = len(alive)
                step.context_tokens = sum(guest.asked.prompt_tokens + number - 1 for guest in alive)
                seconds = self._seconds(len(wave), len(wave) * (prompt_tokens + number - 1), 0)
            step.end_s = now_s + seconds
            if step.end_s > self.case.horizon_s:
                return math.inf
            self.steps.append(step)
            now_s = step.end_s
            self._deliver(wave, alive, number, now_s)
        for guest in wave:
            missing = guest.asked.output_tokens - len(guest.token_times_s)
            guest.token_times_s += [now_s] * missing
            guest.finish_s = guest.finish_s if self.keys["release"] == "own_end" else now_s
        return now_s

    def _deliver(self, wave: list[Guest], alive: list[Guest], number: int, now_s: float) -> None:
        for guest in alive:
            if number == 1 or self.keys["emit"] == "as_made":
                guest.token_times_s.append(now_s)
            if guest.asked.output_tokens == number and self.keys["release"] == "own_end":
                guest.finish_s = now_s

    def _seconds(self, decode_rows: int, context_tokens: int, prefill_tokens: int) -> float:
        if self.case.step_time == CONSTANT:
            return TICK_S
        decode_units = 11 + 3 * decode_rows + context_tokens if decode_rows else 0
        return (37 + 5 * prefill_tokens + decode_units) * UNIT_S


def agree(case: Case) -> None:
    """Compare everything that the package and the reference both know, exactly."""
    reference, recording = Waves(case).run(), case.play()
    assert recorded(recording) == [outcome(guest) for guest in reference.guests]
    assert step_rows(recording) == rows(reference.steps)
    gaps = pooled_gaps(reference.guests)
    for gap_s, count in zip(recording.gaps["gap_s"].tolist(), recording.gaps["tokens"].tolist(), strict=True):
        gaps[gap_s] -= count
    assert not any(gaps.values())


waves = cases(static_keys(), (CONSTANT, EXACT_LINEAR))


@examples(150, thorough=700)
@given(waves)
def test_waves_are_those_of_a_plain_walk(case: Case) -> None:
    """Times, rows, blocks and gaps of all waves are exactly those of a walk over them, with and without a horizon."""
    agree(case)
    agree(replace(case, horizon_s=math.inf))
