"""The keys of a fleet about failures of replicas: retries, health checks, a circuit breaker.

What is left out is the router's own; where the router has nothing of the kind, it is that of `STANDARD`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from simqueue.routing import Recovery
from simqueue.routing.gateway.products import RECOVERY
from simqueue.settings import Settings, invalid

STANDARD: Final = RECOVERY
"""Numbers for keys that neither the scenario nor the router gives: those of sglang-router and vllm-router."""

_LONGEST: Final = 1e9


def _number(description: str, unit: str | None = None, **bounds: Any) -> Any:
    extra: Any = None if unit is None else {"unit": unit}
    return Field(default=None, description=description, json_schema_extra=extra, **bounds)


def _duration(description: str, unit: str = "s") -> Any:
    return _number(description, unit, ge=0, le=_LONGEST)


class RetriesSettings(Settings):
    """How the router sends requests again whose attempt failed. What is left out is the router's own; if it never
    does so, that of sglang-router: `{limit: 5, wait_ms: 50, factor: 1.5, longest_ms: 30000, jitter: 0.2}`.
    """

    limit: int | None = _number("further attempts per request; 0: none", "attempts", ge=0, le=1_000)
    refused: bool | None = Field(
        None,
        description="whether an attempt that a full queue refuses counts as failed; false: the request is rejected",
    )
    wait_ms: float | None = _duration("wait before the first of them", "ms")
    factor: float | None = _number("growth of the wait from one attempt to the next", ge=1, le=1_000)
    longest_ms: float | None = _duration("limit of the wait", "ms")
    jitter: float | None = _number("share by which a wait is longer or shorter at random", ge=0, le=1)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.wait_ms is not None and self.longest_ms is not None and self.longest_ms < self.wait_ms:
            raise invalid(f"must be at least wait_ms = {self.wait_ms:g}", "longest_ms", value=self.longest_ms)
        return self

    def completed(self, own: Recovery) -> RetriesSettings:
        """Return the same with the values of the router in place of those that were left out."""
        from_ = own if own.retries else STANDARD
        wait_ms = _first(self.wait_ms, _ms(from_.first_wait_s))
        longest_ms = _first(self.longest_ms, max(wait_ms, _ms(from_.longest_wait_s)))
        return RetriesSettings(
            limit=_first(self.limit, from_.retries),
            refused=_first(self.refused, from_.retries_refused),
            wait_ms=min(wait_ms, longest_ms),
            factor=_first(self.factor, from_.wait_factor),
            longest_ms=longest_ms,
            jitter=_first(self.jitter, from_.jitter),
        )


class HealthSettings(Settings):
    """Health checks: the router asks each replica from time to time. What is left out is the router's own; if it has
    none, that of sglang-router: `{every_s: 60, timeout_s: 5, failures: 3, successes: 2}`.
    """

    every_s: float | None = _number("time between two checks of a replica", "s", gt=0, le=_LONGEST)
    timeout_s: float | None = _duration("time after which a check without an answer has failed")
    failures: int | None = _number("failed checks in a row after which a replica gets no requests", ge=1, le=1_000)
    successes: int | None = _number("answered checks in a row after which it gets requests again", ge=1, le=1_000)

    def completed(self, own: Recovery) -> HealthSettings:
        """Return the same with the values of the router in place of those that were left out."""
        from_ = STANDARD if own.check_every_s is None else own
        return HealthSettings(
            every_s=_first(self.every_s, from_.check_every_s),
            timeout_s=_first(self.timeout_s, from_.check_timeout_s),
            failures=_first(self.failures, from_.check_failures),
            successes=_first(self.successes, from_.check_successes),
        )


class BreakerSettings(Settings):
    """A circuit breaker: a replica with many failed attempts gets no requests for a time. What is left out is the
    router's own; if it has none, that of sglang-router: `{failures: 10, window_s: 120, open_s: 60, successes: 3}`.
    """

    failures: int | None = _number("failed attempts in a row that open it", ge=1, le=1_000_000)
    window_s: float | None = _duration("time in which they count")
    open_s: float | None = _duration("time for which the replica gets no requests")
    successes: int | None = _number("answers after that until it is closed again", ge=1, le=1_000_000)

    def completed(self, own: Recovery) -> BreakerSettings:
        """Return the same with the values of the router in place of those that were left out."""
        from_ = STANDARD if own.breaker_failures is None else own
        return BreakerSettings(
            failures=_first(self.failures, from_.breaker_failures),
            window_s=_first(self.window_s, from_.breaker_window_s),
            open_s=_first(self.open_s, from_.breaker_open_s),
            successes=_first(self.successes, from_.breaker_successes),
        )


HealthKey = HealthSettings | Literal["at once"]
BreakerKey = BreakerSettings | Literal["none"]


def _form(value: Any) -> str:
    return "word" if isinstance(value, str) else "keys"


def _keys_or(word: str) -> BeforeValidator:
    """Return a validator that says what there is instead of a mapping."""

    def checked(value: Any) -> Any:
        if value == word or isinstance(value, dict | Settings):
            return value
        raise invalid(f"must be a mapping or '{word}'")

    return BeforeValidator(checked)


HealthEntry = Annotated[
    Annotated[HealthSettings, Tag("keys")] | Annotated[Literal["at once"], Tag("word")],
    Discriminator(_form),
    _keys_or("at once"),
]
"""The type of the key `health`; what comes out is a `HealthKey`."""
BreakerEntry = Annotated[
    Annotated[BreakerSettings, Tag("keys")] | Annotated[Literal["none"], Tag("word")],
    Discriminator(_form),
    _keys_or("none"),
]
"""The type of the key `breaker`; what comes out is a `BreakerKey`."""


def complete_retries(given: RetriesSettings | None, own: Recovery) -> RetriesSettings:
    """Return the retries of a fleet; those of the router where none were given."""
    if given is not None:
        return given.completed(own)
    if own.retries:
        return RetriesSettings().completed(own)
    return RetriesSettings(limit=0, refused=False, wait_ms=0.0, factor=1.0, longest_ms=0.0, jitter=0.0)


def complete_health(given: HealthKey | None, own: Recovery) -> HealthKey:
    """Return the health checks of a fleet; those of the router where none were given."""
    if isinstance(given, HealthSettings):
        return given.completed(own)
    return "at once" if given is not None or own.check_every_s is None else HealthSettings().completed(own)


def complete_breaker(given: BreakerKey | None, own: Recovery) -> BreakerKey:
    """Return the circuit breaker of a fleet; that of the router where none was given."""
    if isinstance(given, BreakerSettings):
        return given.completed(own)
    return "none" if given is not None or own.breaker_failures is None else BreakerSettings().completed(own)


def recovery_of(retries: RetriesSettings, health: HealthKey, breaker: BreakerKey, source: str) -> Recovery:
    """Return the record of keys that are all given."""
    return Recovery(**_of_retries(retries), **_of_health(health), **_of_breaker(breaker), source=source)


def _of_retries(keys: RetriesSettings) -> dict[str, Any]:
    return {
        "retries": keys.limit,
        "retries_refused": keys.refused,
        "first_wait_s": _s(keys.wait_ms),
        "wait_factor": keys.factor,
        "longest_wait_s": _s(keys.longest_ms),
        "jitter": keys.jitter,
    }


def _of_health(keys: HealthKey) -> dict[str, Any]:
    if isinstance(keys, str):
        return {}
    return {
        "check_every_s": keys.every_s,
        "check_timeout_s": keys.timeout_s,
        "check_failures": keys.failures,
        "check_successes": keys.successes,
    }


def _of_breaker(keys: BreakerKey) -> dict[str, Any]:
    if isinstance(keys, str):
        return {}
    return {
        "breaker_failures": keys.failures,
        "breaker_window_s": keys.window_s,
        "breaker_open_s": keys.open_s,
        "breaker_successes": keys.successes,
    }


def _first(given: Any, otherwise: Any) -> Any:
    return otherwise if given is None else given


def _ms(seconds: float) -> float:
    return 1e3 * seconds


def _s(milliseconds: float | None) -> float:
    return (milliseconds or 0.0) / 1e3
