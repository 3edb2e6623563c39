"""Users and sessions: requests that are sent one after the other, drawn before their arrival times are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simqueue.errors import InputError, inside
from simqueue.request import Request
from simqueue.traffic import Session, SessionGroup, Turn
from simqueue.workload.attributes import RequestAttributes
from simqueue.workload.build import build_arrivals, build_duration, build_lengths
from simqueue.workload.clients import SessionSettings, UserSettings
from simqueue.workload.durations import Duration
from simqueue.workload.limits import FIRST_GENERATED_STREAM, MOST_PIECES, MOST_REQUESTS
from simqueue.workload.request_lengths import Lengths
from simqueue.workload.settings import WorkloadSettings
from simqueue.workload.streams import Draws
from simqueue.workload.synthetic import Segment, system_prompts

_TURNS_AT_ONCE = 64

Segments = tuple[Segment, ...]


def user_group(
    keys: UserSettings, settings: WorkloadSettings, draws: Draws, base_dir: Path, attributes: RequestAttributes
) -> SessionGroup:
    """Return the users of a closed loop. The requests of a user do not depend on the policy or on other users."""
    lengths = Lengths.of(settings, base_dir)
    think = build_duration(keys.think_s)
    sessions = tuple(
        Session(
            keys.ramp_up_s * number / keys.count,
            _UserTurns(lengths, think, draws, number, () if piece is None else (piece,), attributes),
        )
        for number, piece in enumerate(system_prompts(settings, draws, keys.count))
    )
    expected = settings.num_requests or 0
    return SessionGroup(sessions, settings.num_requests, settings.arrivals_for_s, expected_requests=expected)


@dataclass(frozen=True, slots=True)
class _UserTurns:
    """The requests of one user, without end."""

    lengths: Lengths
    think: Duration
    draws: Draws
    number: int
    system: Segments
    attributes: RequestAttributes

    def __iter__(self) -> Iterator[Turn]:
        name = f"user-{self.number}"
        own = f"users.{self.number}."
        thinks, prompts, outputs = (
            self.draws.rng(own + what) for what in ("think_s", "prompt_tokens", "output_tokens")
        )
        turn = 0
        while True:
            pairs = self.lengths.sample(prompts, outputs, _TURNS_AT_ONCE)
            think_s = self.think.sample(thinks, _TURNS_AT_ONCE)
            for think, prompt, output in zip(think_s.tolist(), *(p.tolist() for p in pairs), strict=True):
                segments = None
                if self.system:  # the rest is a stream of its own, which no other request shares
                    rest = FIRST_GENERATED_STREAM * (2 + self.number) + turn
                    segments = (*self.system, (rest, 0, prompt))
                total = prompt + sum(piece[2] for piece in self.system)
                request = Request(f"{name}.{turn}", 0.0, total, output, prompt=segments, client=name)
                yield Turn(think, self.attributes.added_to_turn(request, self.number))
                turn += 1


def conversation_group(
    keys: SessionSettings, settings: WorkloadSettings, draws: Draws, base_dir: Path, attributes: RequestAttributes
) -> SessionGroup:
    """Return all conversations, turn by turn.

    Raises
    ------
    InputError
        If a file is wrong, or if there would be more than `MOST_REQUESTS` turns.
    """
    with inside("sessions", "arrivals"):
        starts_s = build_arrivals(keys.arrivals, base_dir).times(
            draws.rng("arrivals"), num_requests=keys.num_sessions, until_s=settings.arrivals_for_s
        )
    with inside("sessions", "turns"):
        turns = build_lengths(keys.turns, base_dir).sample(draws.rng("turns"), len(starts_s))
    total = int(turns.sum())
    if total > MOST_REQUESTS:
        text = f"these settings make {total:.3g} turns, at most {MOST_REQUESTS} are allowed"
        raise InputError(text, "sessions", "turns")
    pieces = float((turns.astype(np.float64) ** 2).sum())
    if pieces > MOST_PIECES:
        text = (
            f"the prompts of these conversations, which repeat all earlier turns, would have {pieces:.3g} pieces, the "
            f"sum of the squares of the numbers of turns; at most {MOST_PIECES:,} are allowed"
        )
        raise InputError(text, "sessions", "turns")
    new, outputs = Lengths.of(settings, base_dir).sample(draws.rng("prompt_tokens"), draws.rng("output_tokens"), total)
    think_s = build_duration(keys.think_s).sample(draws.rng("think_s"), total)
    system = system_prompts(settings, draws, len(starts_s))
    ends = np.cumsum(turns)
    sessions = []
    for number, (start_s, end, count) in enumerate(zip(starts_s.tolist(), ends.tolist(), turns.tolist(), strict=True)):
        part = slice(end - count, end)
        conversation = _Conversation(f"session-{number}", FIRST_GENERATED_STREAM + 2 * (end - count), system[number])
        drawn = conversation.turns(think_s[part].tolist(), new[part].tolist(), outputs[part].tolist())
        made = tuple(Turn(turn.think_s, attributes.added_to_turn(turn.request, number)) for turn in drawn)
        sessions.append(Session(start_s, made))
    return SessionGroup(tuple(sessions), ends_on_failure=True, expected_requests=total)


@dataclass(frozen=True, slots=True)
class _Conversation:
    """Numbers the token streams of one conversation: turn j is stream first + 2 j, its answer the next stream."""

    name: str
    first_stream: int
    system: Segment | None

    def turns(self, think_s: list[float], new: list[int], outputs: list[int]) -> Iterator[Turn]:
        """Yield the turns. The first has no think time: it is sent when the conversation starts."""
        history = [] if self.system is None else [self.system]
        context = sum(piece[2] for piece in history)
        for number, (think, fresh, output) in enumerate(zip(think_s, new, outputs, strict=True)):
            prompt_stream, answer_stream = self.first_stream + 2 * number, self.first_stream + 2 * number + 1
            history.append((prompt_stream, 0, fresh))
            context += fresh
            request = Request(
                f"{self.name}.{number}",
                0.0,
                context,
                output,
                prompt=tuple(history),
                output_stream=answer_stream,
                session=self.name,
            )
            yield Turn(think if number else 0.0, request)
            history.append((answer_stream, 0, output))
            context += output
