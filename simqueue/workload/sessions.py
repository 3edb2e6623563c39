"""Users and sessions: who asks what, one thing after the other, drawn before it is known when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from simqueue.errors import InputError, inside
from simqueue.request import Request
from simqueue.traffic import Session, SessionGroup, Turn
from simqueue.workload.drawing import FIRST_STREAM, Draws, Lengths
from simqueue.workload.dressing import Dresser
from simqueue.workload.limits import MOST_REQUESTS
from simqueue.workload.people import SessionSettings, UserSettings
from simqueue.workload.settings import WorkloadSettings

_TURNS_AT_ONCE = 64

Segments = tuple[tuple[int, int, int], ...]


def users(settings: WorkloadSettings, draws: Draws, base_dir: Path, dresser: Dresser) -> SessionGroup:
    """Return the users of a closed loop. What one of them asks depends on neither policy nor other users."""
    people = settings.users
    if people is None:
        raise InputError("workload: users are needed")
    lengths = Lengths.of(settings, base_dir)
    system = _system_prompts(settings, draws, people.count)
    made = tuple(
        Session(
            people.ramp_up_s * number / people.count,
            _UserTurns(people, lengths, draws, number, system[number], dresser),
        )
        for number in range(people.count)
    )
    expected = settings.num_requests or 0
    return SessionGroup(made, settings.num_requests, settings.arrivals_for_s, expected_requests=expected)


@dataclass(frozen=True, slots=True)
class _UserTurns:
    """What one user asks, without end."""

    people: UserSettings
    lengths: Lengths
    draws: Draws
    number: int
    system: Segments
    dresser: Dresser

    def __iter__(self) -> Iterator[Turn]:
        name = f"user-{self.number}"
        own = f"users.{self.number}."
        thinks, prompts, outputs = (
            self.draws.rng(own + what) for what in ("think_s", "prompt_tokens", "output_tokens")
        )
        asked = 0
        while True:
            pairs = self.lengths.sample(prompts, outputs, _TURNS_AT_ONCE)
            think_s = self.people.think_s.sample(thinks, _TURNS_AT_ONCE)
            for think, prompt, output in zip(think_s.tolist(), *(p.tolist() for p in pairs), strict=True):
                segments = None
                if self.system:  # the rest is a stream of its own: nobody else has it
                    rest = FIRST_STREAM * (2 + self.number) + asked
                    segments = (*self.system, (rest, 0, prompt))
                total = prompt + sum(piece[2] for piece in self.system)
                request = Request(f"{name}.{asked}", 0.0, total, output, prompt=segments, client=name)
                yield Turn(think, self.dresser.dress(request, self.number))
                asked += 1


def sessions(settings: WorkloadSettings, draws: Draws, base_dir: Path, dresser: Dresser) -> SessionGroup:
    """Return all conversations, turn by turn."""
    import numpy as np  # noqa: PLC0415  (settings stay light to import)

    chats = settings.sessions
    if chats is None:
        raise InputError("workload: sessions are needed")
    with inside("sessions", "arrivals"):
        starts_s = chats.arrivals.resolved(base_dir).times(
            draws.rng("arrivals"), num_requests=chats.num_sessions, until_s=settings.arrivals_for_s
        )
    with inside("sessions", "turns"):
        turns = chats.turns.resolved(base_dir).sample(draws.rng("turns"), len(starts_s))
    total = int(turns.sum())
    if total > MOST_REQUESTS:
        text = f"these settings make {total:.3g} turns, at most {MOST_REQUESTS} are allowed"
        raise InputError(text, "sessions", "turns")
    lengths = Lengths.of(settings, base_dir)
    new, outputs = lengths.sample(draws.rng("prompt_tokens"), draws.rng("output_tokens"), total)
    think_s = chats.think_s.sample(draws.rng("think_s"), total)
    system = _system_prompts(settings, draws, len(starts_s))
    ends = np.cumsum(turns)
    made = []
    for number, (start_s, end, count) in enumerate(zip(starts_s.tolist(), ends.tolist(), turns.tolist(), strict=True)):
        part = slice(end - count, end)
        said = _Conversation(f"session-{number}", FIRST_STREAM + 2 * (end - count), system[number])
        asked = said.turns(think_s[part].tolist(), new[part].tolist(), outputs[part].tolist())
        made.append(Session(start_s, tuple(Turn(t.think_s, dresser.dress(t.request, number)) for t in asked)))
    return SessionGroup(tuple(made), ends_on_failure=True, expected_requests=total)


@dataclass(frozen=True, slots=True)
class _Conversation:
    """Names the tokens of one conversation: turn j's are stream first + 2 j, its answer's the one after."""

    name: str
    first_stream: int
    system: Segments

    def turns(self, think_s: list[float], new: list[int], outputs: list[int]) -> Iterator[Turn]:
        """Yield the turns; the first has no think time, it comes when the conversation begins."""
        history = list(self.system)
        context = sum(piece[2] for piece in history)
        for number, (think, fresh, output) in enumerate(zip(think_s, new, outputs, strict=True)):
            asked, answered = self.first_stream + 2 * number, self.first_stream + 2 * number + 1
            history.append((asked, 0, fresh))
            context += fresh
            request = Request(
                f"{self.name}.{number}",
                0.0,
                context,
                output,
                prompt=tuple(history),
                output_stream=answered,
                session=self.name,
            )
            yield Turn(think if number else 0.0, request)
            history.append((answered, 0, output))
            context += output


def _system_prompts(settings: WorkloadSettings, draws: Draws, n: int) -> list[Segments]:
    """Return the system prompt of each of `n` people, or nothing for each."""
    return [() if piece is None else (piece,) for piece in system_pieces(settings, draws, n)]


def system_pieces(settings: WorkloadSettings, draws: Draws, n: int) -> list[tuple[int, int, int] | None]:
    """Return the piece of tokens that stands before each of `n` prompts; None without a system prompt."""
    import numpy as np  # noqa: PLC0415  (settings stay light to import)

    chosen = settings.system_prompt
    if chosen is None:
        return [None] * n
    variants = np.floor(draws.rng("system_prompt").random(n) * chosen.variants).astype(np.int64)
    return [(FIRST_STREAM - 1 - variant, 0, chosen.tokens) for variant in variants.tolist()]


def turns_of(chats: SessionSettings) -> float:
    """Return the mean number of turns of a conversation."""
    return chats.turns.mean()
