"""What `cache_aware` and `power_of_two` do in each version: the rule of sglang-router 0.3.2, and switches.

Source: decisions of the released programs (PyPI wheels), recorded one by one; see ``docs/reference/routers.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one version.

    Attributes
    ----------
    miss : str
        Where a text goes that the tree does not know: ``fewest characters`` or ``least loaded``.
    owner : str
        Which of several owners a hit goes to: ``any``, ``creator`` of the node, or ``least loaded``. One of the first
        two that is down loses everything; the last counts only healthy owners.
    inserts_imbalanced : bool
        Whether the text is inserted too when loads are imbalanced.
    look_up_is_use : bool
        Whether a look-up makes the nodes on its way recently used.
    by_tokens : bool
        Whether texts are token numbers, asked from the engines, and not characters.
    counts_for_two : bool
        Whether `power_of_two` compares requests in flight; otherwise it does not count them.
    """

    miss: Literal["fewest characters", "least loaded"] = "least loaded"
    owner: Literal["any", "creator", "least loaded"] = "creator"
    inserts_imbalanced: bool = True
    look_up_is_use: bool = False
    by_tokens: bool = False
    counts_for_two: bool = False


_NEWEST = Rules()
_TO_0_2_4 = replace(_NEWEST, owner="any", look_up_is_use=True)
_TO_0_2_3 = replace(_TO_0_2_4, miss="fewest characters")

SGLANG: Mapping[str, Rules] = {
    "0.1.9": replace(_TO_0_2_3, inserts_imbalanced=False),
    "0.2.3": _TO_0_2_3,
    "0.2.4": _TO_0_2_4,
    "0.3.2": _NEWEST,
}
"""By version of sglang-router."""

VLLM: Mapping[str, Rules] = {
    "0.1.12": _NEWEST,
    "0.1.17": replace(_NEWEST, owner="least loaded", by_tokens=True, counts_for_two=True),
}
"""By version of vllm-router."""
