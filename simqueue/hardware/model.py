"""A model as a cost: what it stores, what a step reads of it, what a token computes and keeps."""

from __future__ import annotations

from dataclasses import dataclass

from simqueue.errors import InputError


@dataclass(frozen=True, slots=True)
class Model:
    """A dense decoder-only transformer with grouped-query attention.

    Attributes
    ----------
    name : str
        Its name in the library, or the one given inline.
    layers, heads, kv_heads, head_dim : int
        Shape of the attention.
    parameters : int
        All stored parameters; tied embeddings count once.
    lookup_parameters : int
        Those of an embedding table that is only looked up: stored, never read as a whole, never multiplied.
        0 where the table is tied to the head, or where only a total is known.
    head_parameters : int
        Those of the output head, which multiplies sampled rows only; 0 where only a total is known.
    dtype_bytes : int
        Bytes of one weight, and of one number in the KV cache.
    max_position : int or None
        Longest sequence the model was made for, in tokens; None where nobody said.
    description : str
        One line for people.
    """

    name: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    parameters: int
    lookup_parameters: int = 0
    head_parameters: int = 0
    dtype_bytes: int = 2
    max_position: int | None = None
    description: str = ""

    @property
    def weight_bytes(self) -> int:
        """Bytes that the weights take in memory, all GPUs together."""
        return self.parameters * self.dtype_bytes

    @property
    def read_bytes(self) -> int:
        """Bytes of weights that one step reads, whatever its batch, all GPUs together."""
        return (self.parameters - self.lookup_parameters) * self.dtype_bytes

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of keys and values that one token leaves behind, over all layers and KV heads."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.dtype_bytes

    @property
    def linear_flops_per_token(self) -> int:
        """FLOPs of one token through all layers, without attention scores and head: 2 a parameter."""
        return 2 * (self.parameters - self.lookup_parameters - self.head_parameters)

    @property
    def head_flops_per_row(self) -> int:
        """FLOPs of the output head for one row whose next token is sampled."""
        return 2 * self.head_parameters

    @property
    def attention_flops_per_pair(self) -> int:
        """FLOPs of one query attending to one token: scores and weighted sum, over all layers and heads."""
        return 4 * self.layers * self.heads * self.head_dim

    def prefill_attention_flops(self, past: int, new: int) -> int:
        """Return the FLOPs of causal attention for `new` prompt tokens behind `past` cached ones.

        ``4 * layers * heads * head_dim * (new * past + new * (new + 1) / 2)``: each new token attends to all
        past ones, to the new ones before it, and to itself.
        """
        return self.attention_flops_per_pair * attention_pairs(past, new)

    def kv_bytes_per_token_per_gpu(self, tensor_parallel: int) -> int:
        """Return the KV bytes of one token on each GPU; KV heads fewer than GPUs are replicated.

        Raises
        ------
        InputError
            The heads cannot be shared out evenly.
        """
        self.check_tensor_parallel(tensor_parallel)
        heads_per_gpu = max(1, self.kv_heads // tensor_parallel)
        return 2 * self.layers * heads_per_gpu * self.head_dim * self.dtype_bytes

    def check_tensor_parallel(self, tensor_parallel: int) -> None:
        """Raise an InputError unless the heads can be shared out over so many GPUs."""
        allowed = self.tensor_parallel_sizes()
        if tensor_parallel not in allowed:
            raise InputError(
                f"tensor_parallel: {tensor_parallel} does not share out the {self.heads} heads and "
                f"{self.kv_heads} KV heads of {self.name}; allowed: {', '.join(map(str, allowed))}"
            )

    def tensor_parallel_sizes(self) -> list[int]:
        """Return the numbers of GPUs over which query heads divide and KV heads divide or are replicated."""
        return [
            n
            for n in range(1, self.heads + 1)
            if self.heads % n == 0 and (self.kv_heads % n == 0 or n % self.kv_heads == 0)
        ]


def attention_pairs(past: int, new: int) -> int:
    """Return how many (query, key) pairs causal attention forms for `new` tokens behind `past` ones."""
    return new * past + new * (new + 1) // 2
