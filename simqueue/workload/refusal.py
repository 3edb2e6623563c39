"""The one way in which settings of a workload refuse a value: a plain sentence, without a prefix."""

from __future__ import annotations

from pydantic_core import PydanticCustomError


def refusal(message: str) -> PydanticCustomError:
    """Return the validation error that shows `message` as it is."""
    # The text goes through a placeholder because braces in a user's value would be read as one.
    return PydanticCustomError("workload", "{message}", {"message": message})
