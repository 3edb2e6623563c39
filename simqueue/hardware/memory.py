"""Size of the KV pool: the memory that the weights leave, in blocks."""

from __future__ import annotations

from simqueue.errors import InputError
from simqueue.hardware.gpu import GB, Gpu
from simqueue.hardware.model import Model


def check_fits(gpu: Gpu, model: Model, tensor_parallel: int, memory_share: float) -> None:
    """Check that the weights fit into the usable memory of the GPUs; a GPU of unknown memory passes.

    Raises
    ------
    InputError
        If the share of the weights on each GPU is not smaller than ``memory_share * memory``.
    """
    if gpu.memory_bytes is not None:
        _bytes_left(gpu, model, tensor_parallel, memory_share, gpu.memory_bytes)


def kv_pool_blocks(gpu: Gpu, model: Model, tensor_parallel: int, memory_share: float, block_size: int) -> int:
    """Return how many KV blocks fit into the memory that the weights leave on each GPU.

    ``floor((memory_share * memory - weights / TP) / (block_size * KV bytes per token and GPU))``.
    Activations and other overheads are covered by the share of memory that `memory_share` leaves out.

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
    left_bytes = _bytes_left(gpu, model, tensor_parallel, memory_share, gpu.memory_bytes)
    blocks = int(left_bytes // block_bytes)
    if blocks < 1:
        raise InputError(
            f"no KV block fits: {model.name} leaves {left_bytes / GB:.3f} GB of {gpu.name}, "
            f"one block of {block_size} tokens takes {block_bytes / GB:.3f} GB",
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
