"""GPUs and models: data files with sources, a config.json reader, and the size of the KV pool."""

from simqueue.hardware.allreduce import AllReduce
from simqueue.hardware.gpu import Gpu, GpuSettings
from simqueue.hardware.grouped import GroupedGemm
from simqueue.hardware.library import (
    GpuChoice,
    ModelChoice,
    gpu_names,
    gpu_rows,
    load_gpu,
    load_model,
    model_names,
    model_rows,
)
from simqueue.hardware.memory import activation_bytes, check_fits, kv_pool_blocks
from simqueue.hardware.model import Model
from simqueue.hardware.model_settings import ModelSettings
from simqueue.hardware.power import Power
from simqueue.hardware.precision import DtypeSettings

__all__ = [
    "AllReduce",
    "DtypeSettings",
    "Gpu",
    "GpuChoice",
    "GpuSettings",
    "GroupedGemm",
    "Model",
    "ModelChoice",
    "ModelSettings",
    "Power",
    "activation_bytes",
    "check_fits",
    "gpu_names",
    "gpu_rows",
    "kv_pool_blocks",
    "load_gpu",
    "load_model",
    "model_names",
    "model_rows",
]
