"""The GPUs and models that come with the package, and the one way to get one: by name, by file, or inline."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import Discriminator, Tag

from simqueue.datafiles.library import Library, validated
from simqueue.datafiles.yamlfile import read_yaml
from simqueue.hardware.gpu import MIB, Gpu, GpuSettings
from simqueue.hardware.model import Model
from simqueue.hardware.model_settings import ModelSettings


def _form(value: Any) -> str:
    return "name" if isinstance(value, str) else "inline"


GpuChoice = Annotated[Annotated[str, Tag("name")] | Annotated[GpuSettings, Tag("inline")], Discriminator(_form)]
"""What a scenario's `gpu` key takes."""

ModelChoice = Annotated[Annotated[str, Tag("name")] | Annotated[ModelSettings, Tag("inline")], Discriminator(_form)]
"""What a scenario's `model` key takes."""


GPUS = Library(files("simqueue.hardware") / "gpus", "gpu")
MODELS = Library(files("simqueue.hardware") / "models", "model")


def gpu_names() -> list[str]:
    """Return the names of the GPUs that come with the package, sorted."""
    return GPUS.names()


def model_names() -> list[str]:
    """Return the names of the models that come with the package, sorted."""
    return MODELS.names()


def load_gpu(value: str | GpuSettings, base_dir: Path) -> Gpu:
    """Return a GPU.

    Parameters
    ----------
    value : str or GpuSettings
        A name from `gpu_names`, a path to a YAML file with the keys of the inline form, or the inline form.
    base_dir : Path
        Where a relative path starts.

    Raises
    ------
    InputError
        An unknown name (the nearest is named), or a file that breaks the rules.
    """
    if isinstance(value, GpuSettings):
        return value.to_gpu()
    if value in gpu_names():
        return _packaged_gpu(value)
    if not _looks_like_a_file(value, base_dir, (".yaml", ".yml")):
        raise GPUS.unknown(value)
    file = base_dir / value
    return validated(GpuSettings, {"name": file.stem, **read_yaml(file)}, str(file)).to_gpu()


def load_model(value: str | ModelSettings, base_dir: Path) -> Model:
    """Return a model.

    Parameters
    ----------
    value : str or ModelSettings
        A name from `model_names`, a path to a Hugging Face config.json (or to the folder that holds it), or
        the inline form.
    base_dir : Path
        Where a relative path starts.

    Raises
    ------
    InputError
        An unknown name (the nearest is named), or a config.json that is not understood.
    """
    if isinstance(value, ModelSettings):
        return value.to_model()
    if value in model_names():
        return _packaged_model(value)
    if not _looks_like_a_file(value, base_dir, (".json",)):
        raise MODELS.unknown(value)
    from simqueue.hardware.huggingface import read_config  # noqa: PLC0415  (settings stay light to import)

    file = base_dir / value
    if file.is_dir():
        file = file / "config.json"
    name = file.parent.name if file.name == "config.json" and file.parent.name else file.stem
    return read_config(file, name).to_model()


@cache
def _packaged_gpu(name: str) -> Gpu:
    facts = GPUS.facts(name)
    return validated(GpuSettings, {"name": name, **facts.values}, f"gpu '{name}'").to_gpu(facts.description)


@cache
def _packaged_model(name: str) -> Model:
    facts = MODELS.facts(name)
    settings = validated(ModelSettings, {"name": name, **facts.values}, f"model '{name}'")
    return settings.to_model(facts.description)


def _looks_like_a_file(value: str, base_dir: Path, endings: tuple[str, ...]) -> bool:
    return value.endswith(endings) or (bool(value) and (base_dir / value).exists())


def gpu_rows() -> list[dict[str, Any]]:
    """Return one row a GPU for a table, units in the keys."""
    gpus = [load_gpu(name, Path()) for name in gpu_names()]
    return [
        {
            "name": gpu.name,
            "description": gpu.description,
            "memory_mib": None if gpu.memory_bytes is None else gpu.memory_bytes // MIB,
            "bandwidth_gb_per_s": gpu.bandwidth_bytes_per_s / 1e9,
            "dense_bf16_tflops": gpu.flops_per_s / 1e12,
            "fp8_tflops": None if gpu.fp8_flops_per_s is None else gpu.fp8_flops_per_s / 1e12,
            "fp4_tflops": None if gpu.fp4_flops_per_s is None else gpu.fp4_flops_per_s / 1e12,
            "link": gpu.link,
            "link_gb_per_s_one_way": None if gpu.link_bytes_per_s is None else gpu.link_bytes_per_s / 1e9,
            "ridge_flops_per_byte": gpu.ridge_flops_per_byte,
        }
        for gpu in gpus
    ]


def model_rows() -> list[dict[str, Any]]:
    """Return one row a model for a table, units in the keys."""
    models = [load_model(name, Path()) for name in model_names()]
    return [
        {
            "name": model.name,
            "description": model.description,
            "parameters_b": model.parameters / 1e9,
            "active_b": model.active_parameters / 1e9,
            "layers": model.layers,
            "heads": model.heads,
            "kv_heads": model.kv_heads,
            "head_dim": model.head_dim,
            "weights_gb": model.weight_bytes / 1e9,
            "kv_bytes_per_token": int(model.kv_bytes_per_token),
            "kv_bytes_beyond_window": int(model.growing_kv_bytes_per_token),
            "max_position_tokens": model.max_position,
        }
        for model in models
    ]
