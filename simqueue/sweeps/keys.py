"""The key of a cell: a hash of all that its rows depend on."""

from __future__ import annotations

import inspect
import json
import marshal
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from simqueue.errors import InputError
from simqueue.installation import VERSION, code_digest
from simqueue.registered import is_own
from simqueue.routing import ROUTERS
from simqueue.scenario.paths import with_contents
from simqueue.scenario.resolved import ResolvedScenario
from simqueue.schedulers import SCHEDULERS

_AT_ONCE: Final = 1 << 20


class Keys:
    """Makes keys of cells. Each file that cells read is hashed once.

    A key is a hash of the settled values, without the scenario's name and with the contents of files instead of their
    paths; of the version and the code of the package; and of the code of schedulers and routers of one's own.
    """

    def __init__(self) -> None:
        self._files: dict[Path, str] = {}
        self._code: Mapping[str, Any] = {"version": VERSION, "code": code_digest(), "own": own_classes()}

    def key(self, scenario: ResolvedScenario) -> str:
        """Return the key of a settled cell.

        Raises
        ------
        InputError
            If a file that it reads cannot be read.
        """
        values = {name: value for name, value in scenario.values.items() if name != "name"}
        content = {"values": with_contents(values, scenario.base_dir, self._digest), **self._code}
        return sha256(json.dumps(content, sort_keys=True, ensure_ascii=False, default=repr).encode()).hexdigest()

    def _digest(self, path: Path) -> str:
        if path not in self._files:
            try:
                self._files[path] = f"sha256:{content_digest(path)}"
            except OSError as error:
                raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        return self._files[path]


def own_classes() -> dict[str, str]:
    """Return a hash of the source of each registered scheduler and router that is not of this package, by its name."""
    found: dict[str, str] = {}
    for kind, registry in (("scheduler", SCHEDULERS), ("router", ROUTERS)):
        for name, cls in sorted(registry.items()):
            if not is_own(cls):
                found[f"{kind} {name}"] = sha256(_source(cls).encode(errors="replace")).hexdigest()
    return found


def _source(cls: type) -> str:
    """Return the source of the module of a class; of the class itself where it has no file, as in a notebook."""
    module = inspect.getmodule(cls)
    for part in (module, cls):
        try:
            return inspect.getsource(part)  # type: ignore[arg-type] # None raises TypeError
        except (OSError, TypeError):
            continue
    codes = (getattr(value, "__code__", None) for _, value in sorted(vars(cls).items()))
    return "".join(marshal.dumps(code).hex() for code in codes if code is not None)


def content_digest(path: Path) -> str:
    """Return a hash of a file, or of all files in a folder with their names."""
    found = sha256()
    if path.is_dir():
        for file in sorted(one for one in path.rglob("*") if one.is_file()):
            found.update(f"{file.relative_to(path).as_posix()}\0{content_digest(file)}\0".encode())
        return found.hexdigest()
    with path.open("rb") as opened:
        while part := opened.read(_AT_ONCE):
            found.update(part)
    return found.hexdigest()
