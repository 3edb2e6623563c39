"""GPUs and models in the package; loads a GPU or a model by name, from a file, or from inline keys."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag

from simqueue.datafiles.library import Library, validated
from simqueue.datafiles.regular import is_there
from simqueue.datafiles.yamlfile import read_yaml
from simqueue.hardware.counting import counted
from simqueue.hardware.gpu import MIB, Gpu, GpuSettings
from simqueue.hardware.huggingface import read_config
from simqueue.hardware.model import Model
from simqueue.hardware.model_settings import ModelSettings
from simqueue.settings import invalid


def _form(value: Any) -> str:
    return "name" if isinstance(value, str) else "inline"


def _not_of_the_library(value: Any) -> Any:
    """Refuse a mapping that only names a model of the library, with what was meant."""
    name = value.get("name") if isinstance(value, dict) else None
    if isinstance(name, str) and "layers" not in value and "parameters" not in value and name in MODELS.names():
        formats = {"weights": "weights", "kv_format": "kv"}
        wanted = ", ".join(f"{formats[key]}: {value[key]}" for key in formats if key in value)
        more = f", and dtype: {{{wanted}}} beside it" if wanted else ""
        raise invalid(f"a model of the library is written as model: {name}{more}; keys inside model are its geometry")
    return value


GpuChoice = Annotated[Annotated[str, Tag("name")] | Annotated[GpuSettings, Tag("inline")], Discriminator(_form)]
"""The `gpu` key of a scenario: a name, a file, or inline keys."""

ModelChoice = Annotated[
    Annotated[str, Tag("name")] | Annotated[ModelSettings, BeforeValidator(_not_of_the_library), Tag("inline")],
    Discriminator(_form),
]
"""The `model` key of a scenario: a name, a file, or inline keys."""


GPUS = Library(files("simqueue.hardware") / "gpus", "gpu")
MODELS = Library(files("simqueue.hardware") / "models", "model")


def gpu_names() -> list[str]:
    """Return the names of the GPUs in the package, sorted."""
    return GPUS.names()


def model_names() -> list[str]:
    """Return the names of the models in the package, sorted."""
    return MODELS.names()


def load_gpu(value: str | GpuSettings, base_dir: Path = Path()) -> Gpu:
    """Return a GPU.

    Parameters
    ----------
    value : str or GpuSettings
        A name from `gpu_names`, a path of a YAML file with the keys of `GpuSettings`, or those settings.
    base_dir : Path
        Start of a relative path.

    Raises
    ------
    InputError
        If the name is unknown (the message has the nearest one), or the file is not valid.
    """
    if isinstance(value, GpuSettings):
        return _gpu(value)
    if value in gpu_names():
        return _packaged_gpu(value)
    if not _looks_like_a_file(value, base_dir, (".yaml", ".yml")):
        raise GPUS.unknown(value)
    file = base_dir / value
    return _gpu(validated(GpuSettings, {"name": file.stem, **read_yaml(file)}, str(file)))


def load_model(value: str | ModelSettings, base_dir: Path = Path()) -> Model:
    """Return a model.

    Parameters
    ----------
    value : str or ModelSettings
        A name from `model_names`, a path of a Hugging Face config.json or of its folder, or settings.
    base_dir : Path
        Start of a relative path.

    Raises
    ------
    InputError
        If the name is unknown (the message has the nearest one), or the config.json is not supported.
    """
    if isinstance(value, ModelSettings):
        return _model(value)
    if value in model_names():
        return _packaged_model(value)
    if not _looks_like_a_file(value, base_dir, (".json",)):
        raise MODELS.unknown(value)
    file = base_dir / value
    if file.is_dir():
        file = file / "config.json"
    name = file.parent.name if file.name == "config.json" and file.parent.name else file.stem
    return _model(read_config(file, name))


@cache
def _packaged_gpu(name: str) -> Gpu:
    facts = GPUS.facts(name)
    return _gpu(validated(GpuSettings, {"name": name, **facts.values}, f"gpu '{name}'"), facts.description)


@cache
def _packaged_model(name: str) -> Model:
    facts = MODELS.facts(name)
    settings = validated(ModelSettings, {"name": name, **facts.values}, f"model '{name}'")
    return _model(settings, facts.description)


def _gpu(settings: GpuSettings, description: str = "") -> Gpu:
    return Gpu(
        name=settings.name,
        memory_bytes=settings.memory_bytes if settings.memory_mib is None else settings.memory_mib * MIB,
        bandwidth_bytes_per_s=settings.bandwidth_bytes_per_s,
        flops_per_s=settings.flops_per_s,
        description=description,
        fp8_flops_per_s=settings.fp8_flops_per_s,
        fp4_flops_per_s=settings.fp4_flops_per_s,
        link=settings.link,
        link_bytes_per_s=settings.link_bytes_per_s,
        allreduces=tuple((measured.gpus, measured.measured()) for measured in settings.allreduces),
        grouped_gemms=tuple((measured.weights, measured.measured()) for measured in settings.grouped_gemms),
        power=None if settings.power is None else settings.power.measured(),
        price=None if settings.price is None else settings.price.known(),
    )


def _model(settings: ModelSettings, description: str = "") -> Model:
    parts = counted(settings) if settings.parameters is None else None
    return Model(
        name=settings.name,
        layers=settings.layers,
        heads=settings.heads,
        kv_heads=settings.kv_heads,
        head_dim=settings.head_dim,
        parameters=settings.parameters or 0 if parts is None else parts.total,
        lookup_parameters=0 if parts is None else parts.lookup,
        head_parameters=0 if parts is None else parts.head,
        dtype_bytes=settings.dtype_bytes,
        max_position=settings.max_position,
        description=description,
        hidden=settings.hidden,
        mlp_width=_mlp_width(settings),
        value_dim=settings.value_dim,
        latent_dim=None if settings.kv_lora_rank is None else settings.kv_lora_rank + (settings.rope_dim or 0),
        window_layers=settings.window_layers or 0,
        window_tokens=settings.window_tokens or 0,
        experts=None if parts is None else parts.experts,
        weights=settings.weights,
        expert_weights=settings.expert_weights,
        kv_format=settings.kv_format,
    )


def _mlp_width(settings: ModelSettings) -> int | None:
    experts = (settings.experts_per_token or 0) * (settings.expert_intermediate or 0)
    routed = experts + (settings.shared_intermediate or 0)
    has_mlp = settings.experts is None or bool(settings.dense_layers)
    return max(routed, settings.intermediate) if has_mlp and settings.intermediate is not None else routed or None


def _looks_like_a_file(value: str, base_dir: Path, endings: tuple[str, ...]) -> bool:
    return value.endswith(endings) or (bool(value) and is_there(base_dir / value))


def gpu_rows() -> list[dict[str, Any]]:
    """Return one row per GPU for a table, with units in the keys."""
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
            "usd_per_hour": None if gpu.price is None else gpu.price.usd_per_hour,
            "priced_in": None if gpu.price is None else gpu.price.month,
        }
        for gpu in gpus
    ]


def model_rows() -> list[dict[str, Any]]:
    """Return one row per model for a table, with units in the keys."""
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
