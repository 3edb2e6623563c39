"""One hostile input: a command, and the files that it needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Content = bytes | Callable[[Path], None]
"""What a file has, or what makes it."""


@dataclass(frozen=True)
class Case:
    """A command, and the files that it needs; ``{}`` in an argument is the folder of the files."""

    name: str
    arguments: tuple[str, ...]
    files: Mapping[str, Content] = field(default_factory=dict)

    def written(self, folder: Path) -> list[str]:
        """Write the files and return the arguments."""
        folder.mkdir(parents=True)
        for name, content in self.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if callable(content):
                content(file)
            else:
                file.write_bytes(content)
        return [argument.replace("{}", str(folder)) for argument in self.arguments]


GOOD: Mapping[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm",
    "workload": {
        "arrivals": {"process": "poisson", "rate_rps": 4},
        "num_requests": 10,
        "prompt_tokens": {"distribution": "constant", "value": 10},
        "output_tokens": {"distribution": "constant", "value": 10},
    },
    "policies": {"c": {"scheduler": "chunked"}},
}


def good(**changes: Any) -> str:
    """Return a scenario that is right but for the changes, as JSON, which is YAML too."""
    return json.dumps({**GOOD, **changes}, indent=1)


def validated(name: str, text: str | bytes, files: Mapping[str, Content] | None = None) -> Case:
    """Return the case in which a scenario of this text is validated."""
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return Case(name, ("validate", "{}/s.yaml"), {"s.yaml": content, **(files or {})})
