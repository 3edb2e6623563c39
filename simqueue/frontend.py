"""The front end of a server: what a request goes through outside the scheduler and the GPU.

Network, HTTP, the chat template and tokenisation come before the scheduler. One process works on one request at a time,
so that requests queue there, however free the GPU is. Some servers take further time until the first token is on its
way; the tokens that are made meanwhile arrive with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field

from simqueue.settings import Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray  # numpy loads slowly, and scenarios are validated without it

Tokens = TypeVar("Tokens", float, "NDArray[Any]")
"""Of one request, or of several."""


def _time(description: str, unit: str, most: float) -> Any:
    return Field(default=0.0, ge=0, le=most, description=description, json_schema_extra={"unit": unit})


class FrontEndSettings(Settings):
    """``front_end: {network_ms: 1, request_ms: 2, prompt_us: 1.5}``; what is left out takes no time."""

    network_ms: float = _time("round trip between client and server; requests do not wait for each other", "ms", 1e6)
    request_ms: float = _time("work on each request before the scheduler gets it; one request at a time", "ms", 1e6)
    prompt_us: float = _time("further work per prompt token, as request_ms", "us", 1e6)
    output_us: float = _time(
        "work per output token; it delays the requests that come after, and not its own", "us", 1e6
    )
    first_token_ms: float = _time(
        "delay of the first token on its way to the client; tokens that are made meanwhile arrive with it", "ms", 1e6
    )
    first_token_us: float = _time("further delay of the first token per prompt token", "us", 1e6)

    def times(self) -> FrontEndTimes | None:
        """Return the same in seconds; None if nothing takes time."""
        found = FrontEndTimes(
            network_s=1e-3 * self.network_ms,
            request_s=1e-3 * self.request_ms,
            prompt_token_s=1e-6 * self.prompt_us,
            output_token_s=1e-6 * self.output_us,
            first_token_s=1e-3 * self.first_token_ms,
            first_token_s_per_prompt_token=1e-6 * self.first_token_us,
        )
        return None if found == FrontEndTimes() else found


@dataclass(frozen=True, slots=True)
class FrontEndTimes:
    """How long requests take outside the scheduler and the GPU, in seconds.

    Attributes
    ----------
    network_s : float
        Round trip of a request; not shared.
    request_s, prompt_token_s, output_token_s : float
        Work of the front end per request, prompt token and output token.
    first_token_s, first_token_s_per_prompt_token : float
        Delay of the first token, per request and prompt token; not shared.
    """

    network_s: float = 0.0
    request_s: float = 0.0
    prompt_token_s: float = 0.0
    output_token_s: float = 0.0
    first_token_s: float = 0.0
    first_token_s_per_prompt_token: float = 0.0

    def before_s(self, prompt_tokens: Tokens) -> Tokens:
        """Return the work on a request before the scheduler gets it."""
        return self.request_s + self.prompt_token_s * prompt_tokens

    def unhindered_s(self, prompt_tokens: Tokens) -> Tokens:
        """Return when the scheduler gets a request that waits for no other one, counted from its sending."""
        return self.network_s + self.before_s(prompt_tokens)

    def delay_s(self, prompt_tokens: float) -> float:
        """Return the delay of the first token on its way to the client."""
        return self.first_token_s + self.first_token_s_per_prompt_token * prompt_tokens


class FrontEnd:
    """The front end of one replica during a run.

    Parameters
    ----------
    times : FrontEndTimes
    """

    def __init__(self, times: FrontEndTimes) -> None:
        self.times = times
        self._free_s = 0.0

    def passed_s(self, now_s: float, prompt_tokens: int, output_tokens: int) -> float:
        """Take in a request that its client sends now; return when the scheduler gets it.

        Calls are in order of `now_s`. The whole round trip counts before the scheduler, which gives the same
        latencies as half of it before and half after.
        """
        times = self.times
        passed_s = max(self._free_s, now_s + times.network_s) + times.before_s(prompt_tokens)
        self._free_s = passed_s + times.output_token_s * output_tokens
        return passed_s
