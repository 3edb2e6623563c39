"""The small network of the bench. It has no attention and no KV, so the time of a call depends on its rows alone."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Final

from simqueue.errors import InputError

VOCABULARY: Final = 4096
WIDTH: Final = 256
HIDDEN: Final = 1024
BLOCKS: Final = 4
SEED: Final = 0


def load_torch() -> Any:
    """Import torch on demand.

    Raises
    ------
    InputError
        If it is not installed; the error says how to install it.
    """
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise InputError("torch is not installed; in a checkout of simqueue: pip install '.[torch]'") from error


class TinyLM:
    """Embedding, four residual blocks (each an MLP and a linear layer after layer norms), and a head without bias.

    Parameters
    ----------
    torch : module
    device : str
        Device to run on, such as ``cpu`` or ``cuda``.
    """

    def __init__(self, torch: Any, device: str) -> None:
        nn = torch.nn
        with torch.random.fork_rng():  # do not change the caller's random state
            torch.manual_seed(SEED)
            self.embedding = nn.Embedding(VOCABULARY, WIDTH).to(device)
            self.blocks: Sequence[tuple[Any, Any]] = [
                (
                    nn.Sequential(
                        nn.LayerNorm(WIDTH), nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, WIDTH)
                    ).to(device),
                    nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)).to(device),
                )
                for _ in range(BLOCKS)
            ]
            self.head = nn.Linear(WIDTH, VOCABULARY, bias=False).to(device)

    def __call__(self, tokens: Any) -> Any:
        """Return the next token of every row.

        Parameters
        ----------
        tokens : integer tensor of shape (rows, length)

        Returns
        -------
        integer tensor of shape (rows, 1)
        """
        x = self.embedding(tokens)
        for mlp, mix in self.blocks:
            x = x + mlp(x)
            x = x + mix(x)
        return self.head(x[:, -1:]).argmax(dim=-1)
