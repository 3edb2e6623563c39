"""The head of a page and the terms: what was run, in plain sight."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import simqueue as sq
from simqueue.report.document import Cells
from simqueue.report.facts import facts
from simqueue.report.glossary import FLEET_GLOSSARY, GLOSSARY
from simqueue.report.lines import SECTIONS
from simqueue.report.page import result_page

METRICS = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
SERVED: dict[str, Any] = {
    "name": "served",
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm",
    "tensor_parallel": 2,
    "step_time": {"kind": "roofline", "preset": "ideal"},
    "kv_cache": {"blocks": 4000, "block_size": 16},
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 7.5},
        "prompt_tokens": {"distribution": "constant", "value": 320},
        "output_tokens": {"distribution": "constant", "value": 20},
        "num_requests": 60,
    },
    "slo": {"ttft_ms": 1500},
    "policies": {
        "mine": {"scheduler": "chunked", "max_num_seqs": 48, "chunk_tokens": 256},
        "theirs": {"engine": "vllm", "version": "0.11.0", "usage": "server"},
    },
}


def test_the_head_says_model_gpu_preset_rate_and_policies() -> None:
    """All of them stand above the first table, with what the requests really were."""
    result = sq.run(SERVED)
    found = facts(result)
    assert found["Model"].startswith("llama-3.1-8b")
    assert found["GPU"] == "2 × h100-sxm (tensor parallel)"
    assert "preset ideal" in found["Step times"]
    assert found["KV memory"] == "4,000 blocks of 16 tokens = 64,000 tokens"
    assert "poisson arrivals, 7.5 requests/s" in found["Workload"]
    span_s = result.requests["arrival_s"].max() - result.requests["arrival_s"].min()
    assert found["Requests"].startswith(f"60 in {span_s:.3g} s ({59 / span_s:.3g} requests/s), prompts of 320 tokens")
    assert "mine: chunked, max_num_seqs 48" in found["Policies"]
    assert "theirs: vllm 0.11.0" in found["Policies"]
    assert found["SLO"] == "TTFT 1,500 ms"
    kinds = [type(block).__name__ for block in result_page(result).blocks]
    assert kinds.index("Terms") < kinds.index("Cells")


def test_what_does_not_apply_is_left_out() -> None:
    """A run of constant steps has no model, no GPU and no SLO; policies with different pools are told apart."""
    requests = [{"id": "a", "arrival_s": 0, "prompt_tokens": 16, "output_tokens": 2}]
    found = facts(
        sq.run(
            {
                "step_time": {"kind": "constant", "seconds": 0.01},
                "kv_cache": {"blocks": 50},
                "workload": {"requests": requests},
                "policies": {"p": {"scheduler": "static"}},
            }
        )
    )
    assert not {"Model", "GPU", "SLO", "Replications", "Warm-up"} & set(found)
    assert found["Step times"] == "constant, seconds 0.01"
    assert found["Workload"] == "a list of requests"


def test_the_glossary_stands_in_the_reference() -> None:
    """The page and docs/reference/metrics.md have the same terms with the same texts."""
    section = METRICS.read_text(encoding="utf-8").partition("## Glossary\n")[2].partition("\n## ")[0]
    written = dict(re.findall(r"^- \*\*(.+?)\*\*: (.+)$", section, flags=re.MULTILINE))
    assert written == GLOSSARY | FLEET_GLOSSARY


def test_every_line_of_the_comparison_is_explained() -> None:
    """Each label begins with a term, such as `TTFT mean` with TTFT."""
    for line in (line for section in SECTIONS.values() for line in section):
        said = line.label.startswith("measured") or any(
            line.label.startswith(term) for term in GLOSSARY | FLEET_GLOSSARY
        )
        assert said, f"{line.label} is not in the glossary"


def test_classes_have_a_table_of_their_own() -> None:
    """Each class has one row per policy; the main table has no rows of classes."""
    asked = SERVED | {
        "workloads": dict.fromkeys(("chat", "batch"), SERVED["workload"]),
        "policies": {"mine": SERVED["policies"]["mine"], "other": {"scheduler": "static"}},
    }
    del asked["workload"]
    blocks = result_page(sq.run(asked)).blocks
    overall, by_class = (block for block in blocks if isinstance(block, Cells))
    assert sorted(by_class.sections.values()) == ["batch", "chat"]
    assert [row[0] for row in by_class.rows] == ["mine", "other"] * 2
    assert by_class.columns[1:4] == ("completed", "throughput (req/s)", "goodput (req/s)")
    assert [row[1] for row in by_class.rows] == ["60"] * 4
    assert overall.columns == ("", "mine", "other")
    assert not any("chat" in row[0] for row in overall.rows)
