"""From memory to KV blocks: what the weights leave of a GPU, and whether they fit at all."""

from __future__ import annotations

from simqueue.errors import InputError
from simqueue.hardware.gpu import GB, Gpu
from simqueue.hardware.model import Model


def check_fits(gpu: Gpu, model: Model, tensor_parallel: int, memory_share: float) -> None:
    """Raise an InputError unless each GPU's part of the weights is smaller than the memory it may use.

    A GPU whose memory nobody stated is taken to be large enough: there is nothing to compare with.
    """
    if gpu.memory_bytes is not None:
        _bytes_left(gpu, model, tensor_parallel, memory_share, gpu.memory_bytes)


def kv_pool_blocks(gpu: Gpu, model: Model, tensor_parallel: int, memory_share: float, block_size: int) -> int:
    """Return how many KV blocks fit beside the weights on each GPU.

    ``floor((memory_share * memory - weights / TP) / (block_size * KV bytes a token on each GPU))``.
    Activations and other overheads are what `memory_share` leaves out.

    Parameters
    ----------
    gpu : Gpu
        Its reported memory counts.
    model : Model
        Its stored weights count, the embedding table included.
    tensor_parallel : int
        GPUs that share the model; fewer KV heads than GPUs are replicated.
    memory_share : float
        Share of the reported memory that the server may use, in (0, 1].
    block_size : int
        Tokens a block.

    Raises
    ------
    InputError
        The GPU states no memory, the weights do not fit, not one block fits, or the heads cannot be shared
        out.
    """
    block_bytes = block_size * model.kv_bytes_per_token_per_gpu(tensor_parallel)
    if gpu.memory_bytes is None:
        raise InputError(
            f"{gpu.name} states no memory, so the KV pool cannot be sized; give memory_mib there, or kv_cache.blocks",
            "gpu",
        )
    left_bytes = _bytes_left(gpu, model, tensor_parallel, memory_share, gpu.memory_bytes)
    blocks = int(left_bytes // block_bytes)
    if blocks < 1:
        raise InputError(
            f"{model.name} leaves {left_bytes / GB:.3f} GB of {gpu.name}, "
            f"and one block of {block_size} tokens takes {block_bytes / GB:.3f} GB",
            "kv_cache",
        )
    return blocks


def _bytes_left(gpu: Gpu, model: Model, tensor_parallel: int, memory_share: float, memory_bytes: int) -> float:
    model.check_tensor_parallel(tensor_parallel)
    usable_bytes = memory_share * memory_bytes
    left_bytes = usable_bytes - model.weight_bytes / tensor_parallel
    if left_bytes <= 0:
        gpus = f" / {tensor_parallel} GPUs" if tensor_parallel > 1 else ""
        what = f", {gpu.description}" if gpu.description else ""
        raise InputError(
            f"{model.name} does not fit {gpu.name}{what}: "
            f"weights {model.weight_bytes / GB:.0f} GB{gpus} > {usable_bytes / GB:.1f} GB "
            f"(memory_share {memory_share:g} of {memory_bytes / GB:.1f} GB reported)",
            "model",
        )
    return left_bytes
