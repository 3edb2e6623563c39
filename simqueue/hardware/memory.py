"""Size of the KV pool: the memory that the weights and other uses leave, in blocks."""

from __future__ import annotations

from simqueue.errors import InputError
from simqueue.hardware.gpu import GB, Gpu
from simqueue.hardware.model import Model

SHARE_KEY = "memory_share"


def activation_bytes(model: Model, tensor_parallel: int, tokens: int) -> float | None:
    """Return the peak of the activations of a step on each GPU, in bytes; None if the model's widths are unknown.

    ``3 * (MLP width / TP + hidden) * tokens`` numbers: gate, up and their product, of which each GPU has its part; and
    the residual stream, its norm and the output, which each GPU has in full. Published logs of vLLM agree within some
    5 %: Llama 3.1 8B with 20,000 and 29,000 tokens (issue 10517 of vllm-project/vllm), Qwen2.5 1.5B with 32,768.
    """
    if model.hidden is None or model.mlp_width is None:
        return None
    return 3 * (model.mlp_width / tensor_parallel + model.hidden) * tokens * model.dtype_bytes


def check_fits(
    gpu: Gpu, model: Model, tensor_parallel: int, memory_share: float, *, share_key: str = SHARE_KEY
) -> None:
    """Check that the weights fit into the usable memory of the GPUs; a GPU of unknown memory passes.

    Raises
    ------
    InputError
        If the share of the weights on each GPU is not smaller than ``memory_share * memory``. The message has
        `share_key` as the key that decides `memory_share`.
    """
    if gpu.memory_bytes is not None:
        _bytes_left(gpu, model, tensor_parallel, gpu.memory_bytes, memory_share, share_key)


def kv_pool_blocks(
    gpu: Gpu,
    model: Model,
    tensor_parallel: int,
    memory_share: float,
    block_size: int,
    *,
    taken_bytes: float = 0.0,
    share_key: str = SHARE_KEY,
) -> int:
    """Return how many KV blocks fit into the memory that is left on each GPU.

    ``floor((memory_share * memory - weights / TP - taken) / (block_size * KV bytes per token and GPU))``.

    Parameters
    ----------
    gpu : Gpu
        The reported memory is used.
    model : Model
        All stored weights are counted, including the embedding table.
    tensor_parallel : int
        Number of GPUs the model is split over. If it exceeds the number of KV heads, KV heads are replicated.
    memory_share : float
        Share of the reported memory that the server uses, in (0, 1].
    block_size : int
        Tokens per block.
    taken_bytes : float
        What activations and other uses take of each GPU, within `memory_share`.
    share_key : str
        The key or flag that decides `memory_share`, for messages.

    Raises
    ------
    InputError
        If the GPU's memory is unknown, the weights do not fit, not one block fits, or the heads cannot be divided
        over the GPUs.
    """
    block_bytes = block_size * model.kv_bytes_per_token_per_gpu(tensor_parallel)
    if gpu.memory_bytes is None:
        raise InputError(
            f"the memory of {gpu.name} is unknown, so the KV pool cannot be sized; give memory_mib or kv_cache.blocks",
            "gpu",
        )
    left_bytes = _bytes_left(gpu, model, tensor_parallel, gpu.memory_bytes, memory_share, share_key)
    blocks = int((left_bytes - taken_bytes) // block_bytes)
    if blocks < 1:
        taken = f", activations and other uses take {taken_bytes / GB:.3f} GB" if taken_bytes else ""
        raise InputError(
            f"no KV block fits: {model.name} leaves {left_bytes / GB:.3f} GB of {gpu.name}{taken}, "
            f"one block of {block_size} tokens takes {block_bytes / GB:.3f} GB ({share_key} {memory_share:g})",
            "kv_cache",
        )
    return blocks


def _bytes_left(
    gpu: Gpu, model: Model, tensor_parallel: int, memory_bytes: int, memory_share: float, share_key: str
) -> float:
    model.check_tensor_parallel(tensor_parallel)
    usable_bytes = memory_share * memory_bytes
    left_bytes = usable_bytes - model.weight_bytes / tensor_parallel
    if left_bytes <= 0:
        gpus = f" / {tensor_parallel} GPUs" if tensor_parallel > 1 else ""
        what = f", {gpu.description}" if gpu.description else ""
        raise InputError(
            f"{model.name} does not fit {gpu.name}{what}: "
            f"weights {model.weight_bytes / GB:.0f} GB{gpus} > {usable_bytes / GB:.1f} GB "
            f"({share_key} {memory_share:g} of {memory_bytes / GB:.1f} GB reported)",
            "model",
        )
    return left_bytes
