"""GPUs and models by name, by file, inline."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from simqueue.datafiles.library import Library
from simqueue.errors import InputError
from simqueue.hardware import (
    GpuChoice,
    GpuSettings,
    ModelChoice,
    ModelSettings,
    gpu_names,
    gpu_rows,
    load_gpu,
    load_model,
    model_names,
    model_rows,
)
from simqueue.hardware.library import GPUS, MODELS

HERE = Path()


def test_names() -> None:
    """The library has the GPUs and models that scenarios can name, sorted."""
    assert gpu_names() == sorted(
        [
            *("a100-40gb", "a100-80gb", "h100-sxm", "h100-pcie", "h200-sxm", "h20", "b200", "gb200", "l4", "l40s"),
            *("a10g", "rtx-4090", "rtx-5090", "rtx-pro-6000", "mi300x", "mi355x", "tpu-v5e"),
        ]
    )
    assert model_names() == sorted(
        [
            *("llama-3.1-405b", "llama-3.1-70b", "llama-3.1-8b", "llama-2-70b", "qwen3-8b", "qwen3-32b"),
            *("qwen3-30b-a3b", "qwen3-235b-a22b", "qwen2.5-7b", "qwen2.5-72b", "mixtral-8x7b", "phi-4"),
            *("mistral-7b-v0.1", "mistral-7b-v0.2", "mistral-7b-v0.3", "deepseek-v3", "deepseek-r1"),
            *("gpt-oss-20b", "gpt-oss-120b", "gemma-3-27b", "minimax-m2.5"),
        ]
    )


@pytest.mark.parametrize(
    ("name", "memory_mib", "bandwidth", "flops", "ridge"),
    [
        ("h100-sxm", 81_559, 3.35e12, 989.4e12, 295),
        ("h200-sxm", 143_771, 4.8e12, 989.4e12, 206),
        ("a100-80gb", 81_920, 2.039e12, 312e12, 153),
        ("a100-40gb", 40_960, 1.555e12, 312e12, 201),
        ("h100-pcie", 81_559, 2.0e12, 756.5e12, 378),
        ("h20", 97_871, 4.0e12, 148e12, 37),
        ("b200", 183_359, 8.0e12, 2250e12, 281),
        ("gb200", 189_471, 8.0e12, 2500e12, 312),
        ("l4", 23_034, 0.3e12, 121e12, 403),
        ("l40s", 46_068, 0.864e12, 362.05e12, 419),
        ("a10g", 23_028, 0.6e12, 70e12, 117),
        ("rtx-4090", 24_564, 1.008e12, 165.2e12, 164),
        ("rtx-5090", 32_607, 1.792e12, 209.5e12, 117),
        ("rtx-pro-6000", 97_887, 1.597e12, 468e12, 293),
        ("mi300x", 196_592, 5.3e12, 1307.4e12, 247),
        ("mi355x", 294_896, 8.0e12, 2516e12, 314),
        ("tpu-v5e", 16_384, 0.819e12, 197e12, 241),
    ],
)
def test_gpu_values(name: str, memory_mib: int, bandwidth: float, flops: float, ridge: int) -> None:
    """GPUs carry the memory the driver reports and the vendor's dense peaks."""
    gpu = load_gpu(name, HERE)
    assert (gpu.memory_bytes, gpu.bandwidth_bytes_per_s, gpu.flops_per_s) == (memory_mib * 2**20, bandwidth, flops)
    assert round(gpu.ridge_flops_per_byte) == ridge


@pytest.mark.parametrize(
    ("name", "both_directions_gb_per_s"),
    [("a100-80gb", 600), ("h100-sxm", 900), ("b200", 1800), ("rtx-4090", 64), ("rtx-5090", 128), ("mi300x", 896)],
)
def test_links_count_one_direction(name: str, both_directions_gb_per_s: float) -> None:
    """A GPU's link is half of the figure vendors print, which adds both directions."""
    assert load_gpu(name, HERE).link_bytes_per_s == both_directions_gb_per_s / 2 * 1e9


def test_peaks_by_format() -> None:
    """fp8 matrices have the fp8 peak if the GPU has one, else they are converted and have the bf16 peak."""
    h100, a100 = load_gpu("h100-sxm", HERE), load_gpu("a100-80gb", HERE)
    assert (h100.flops_for(None), h100.flops_for("fp8"), h100.flops_for("fp4")) == (989.4e12, 1978.9e12, 989.4e12)
    assert a100.flops_for("fp8") == 312e12
    assert load_gpu("b200", HERE).flops_for("fp4") == 9000e12


@pytest.mark.parametrize("library", [GPUS, MODELS])
def test_every_fact_has_a_source(library: Library) -> None:
    """Each value in the data files is in a group with a source, and each file has a description."""
    for name in library.names():
        facts = library.facts(name)
        assert facts.description
        assert facts.values.keys() == facts.sources.keys()
        assert all(len(source) > 20 for source in facts.sources.values())


def test_unknown_names_get_the_nearest() -> None:
    """The error for a misspelt name is one line with the nearest name and all known names."""
    with pytest.raises(InputError, match=r"^unknown gpu 'h100'; did you mean 'h100-pcie' or 'h100-sxm'\?.*a100-80gb"):
        load_gpu("h100", HERE)
    with pytest.raises(InputError, match=r"^unknown model 'llama-3-8b'; did you mean 'llama-3.1-8b'\?"):
        load_model("llama-3-8b", HERE)
    with pytest.raises(InputError, match=r"^unknown gpu ''; known: "):
        load_gpu("", HERE)


def test_rows_for_tables() -> None:
    """The tables of GPUs and models have one row per name, units in the keys, and the values of the library."""
    assert [row["name"] for row in gpu_rows()] == gpu_names()
    assert {row["name"]: row["memory_mib"] for row in gpu_rows()}["h100-sxm"] == 81_559
    assert [row["name"] for row in model_rows()] == model_names()
    assert {row["name"]: row["kv_bytes_per_token"] for row in model_rows()}["qwen3-8b"] == 147_456


def test_gpu_inline() -> None:
    """An inline GPU takes memory in MiB or bytes, whole numbers in scientific notation included, or none."""
    rates = {"bandwidth_bytes_per_s": 3.35e12, "flops_per_s": 350e12}
    assert load_gpu(GpuSettings(**rates, memory_mib=81559)).memory_bytes == 85_520_809_984
    assert load_gpu(GpuSettings.model_validate({**rates, "memory_bytes": 80e9})).memory_bytes == 80_000_000_000
    assert load_gpu(GpuSettings(**rates), HERE).memory_bytes is None
    with pytest.raises(ValidationError, match="not both"):
        GpuSettings(**rates, memory_mib=1, memory_bytes=1)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "3e12", True])
@pytest.mark.parametrize("key", ["flops_per_s", "bandwidth_bytes_per_s", "memory_mib"])
def test_gpu_rejects_impossible_rates(key: str, bad: object) -> None:
    """Zero, negative, NaN, infinite and non-numeric rates and memory are rejected, naming the key (case 49)."""
    good = {"flops_per_s": 1e12, "bandwidth_bytes_per_s": 1e12, "memory_mib": 1000}
    with pytest.raises(ValidationError) as caught:
        GpuSettings.model_validate({**good, key: bad})
    assert [error["loc"] for error in caught.value.errors()] == [(key,)]


def test_gpu_from_a_file(tmp_path: Path) -> None:
    """A GPU can be a YAML file with the keys of the inline form; its path starts at the scenario's folder."""
    (tmp_path / "toy.yaml").write_text("memory_mib: 1000\nbandwidth_bytes_per_s: 1.0e12\nflops_per_s: 1e14\n")
    gpu = load_gpu("toy.yaml", tmp_path)
    assert (gpu.name, gpu.memory_bytes, gpu.flops_per_s) == ("toy", 1000 * 2**20, 1e14)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "bandwidth_bytes_per_s: 0\nflops_per_s: 1e14\n",
            r"bandwidth_bytes_per_s: .*greater than or equal to 1.*got 0",
        ),
        ("bandwith_bytes_per_s: 1e12\nflops_per_s: 1e14\n", r"did you mean 'bandwidth_bytes_per_s'"),
        ("flops_per_s: 1e14\nflops_per_s: 1e15\n", r"toy.yaml:2: the key 'flops_per_s' occurs twice"),
        ("- 1\n", r"it must be a mapping"),
    ],
)
def test_gpu_file_errors_take_one_line(tmp_path: Path, text: str, said: str) -> None:
    """A GPU file that breaks the rules is rejected in one line that names the file and the key."""
    (tmp_path / "toy.yaml").write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        load_gpu("toy.yaml", tmp_path)
    assert "toy.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_files_are_named() -> None:
    """A path without a file is named in the error."""
    with pytest.raises(InputError, match=r"nowhere.yaml: cannot be read"):
        load_gpu("nowhere.yaml", HERE)
    with pytest.raises(InputError, match=r"config.json: cannot be read"):
        load_model("nowhere/config.json", HERE)


def test_choices_tell_name_from_inline() -> None:
    """The scenario's keys take a name or a mapping; errors in a mapping do not mention names."""
    assert TypeAdapter(GpuChoice).validate_python("h100-sxm") == "h100-sxm"
    inline = TypeAdapter(ModelChoice).validate_python(
        {"parameters": 8e9, "layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128}
    )
    assert isinstance(inline, ModelSettings)
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(GpuChoice).validate_python({"flops_per_s": 1e12, "bandwidth_bytes_per_s": -1})
    assert [error["loc"][-1] for error in caught.value.errors()] == ["bandwidth_bytes_per_s"]
