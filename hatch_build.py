"""Compiles the engine's inner loop with mypyc when a wheel is built, where there is a C compiler.

The compiled modules are the same Python files, which stay beside them: without a compiler, or with SIMQUEUE_PURE=1,
the wheel holds only those and works the same, two to three times slower.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PURE = "SIMQUEUE_PURE"
COMPILED = (
    "simqueue/request.py",
    "simqueue/schedulers/base.py",
    "simqueue/schedulers/answers.py",
    "simqueue/schedulers/step.py",
    "simqueue/schedulers/seats.py",
    "simqueue/schedulers/decoding.py",
    "simqueue/schedulers/waiting.py",
    "simqueue/schedulers/limits.py",
    "simqueue/schedulers/iteration.py",
    "simqueue/schedulers/chunked.py",
    "simqueue/schedulers/continuous.py",
    "simqueue/schedulers/static.py",
    "simqueue/schedulers/llamacpp.py",
    "simqueue/schedulers/vllm_v0.py",
    "simqueue/schedulers/vllm_v1.py",
    "simqueue/kvcache/base.py",
    "simqueue/kvcache/layouts.py",
    "simqueue/kvcache/identity.py",
    "simqueue/kvcache/extents.py",
    "simqueue/kvcache/freequeue.py",
    "simqueue/kvcache/prefix.py",
    "simqueue/steptime/base.py",
    "simqueue/steptime/folding.py",
    "simqueue/steptime/linear.py",
    "simqueue/steptime/scaled.py",
    "simqueue/steptime/work.py",
    "simqueue/steptime/roofline.py",
    "simqueue/simulation/clock.py",
    "simqueue/simulation/ends.py",
    "simqueue/simulation/inflight.py",
    "simqueue/simulation/options.py",
    "simqueue/simulation/requestrows.py",
    "simqueue/simulation/steprows.py",
    "simqueue/simulation/tokens.py",
    "simqueue/simulation/request_log.py",
    "simqueue/simulation/replica_log.py",
    "simqueue/simulation/progress.py",
    "simqueue/simulation/replica.py",
    "simqueue/simulation/site.py",
    "simqueue/simulation/server.py",
    "simqueue/simulation/simulate.py",
    "simqueue/simulation/member.py",
    "simqueue/simulation/fleet.py",
)
"""What runs at every step or request. The rest is run once, or spends its time in other libraries, or is for tests."""


class CompileHook(BuildHookInterface[Any]):
    """Adds compiled modules to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless these very sources have been compiled here before, and let the wheel take the results in."""
        if self.target_name != "wheel" or version == "editable" or os.environ.get(PURE):
            return
        root = Path(self.root)
        folder = root / "build" / f"compiled-{_fingerprint(root)}"
        if not folder.is_dir():
            try:
                _compile_into(folder, root)
            except (Exception, SystemExit) as problem:  # whatever is missing: the pure wheel works too
                self.app.display_warning(f"simqueue: not compiled, the wheel is pure Python and slower ({problem})")
                return
        made = [path for path in folder.rglob("*") if path.is_file()]
        build_data["force_include"].update({str(path): path.relative_to(folder).as_posix() for path in made})
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def _fingerprint(root: Path) -> str:
    """Return a name for these sources on this interpreter."""
    content = hashlib.sha256(f"{sysconfig.get_config_var('EXT_SUFFIX')} {sys.version}".encode())
    for path in sorted([root / "hatch_build.py", *(root / "simqueue").rglob("*.py")]):
        content.update(path.read_bytes())
    return content.hexdigest()[:16]


def _compile_into(folder: Path, root: Path) -> None:
    """Leave the compiled modules of `root` in `folder`, or nothing."""
    with tempfile.TemporaryDirectory(prefix="simqueue-build-") as name:
        work = Path(name)
        made = _compile(root, work)
        for path in made:
            (work / "made" / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(work / path, work / "made" / path)
        folder.parent.mkdir(exist_ok=True)
        shutil.move(work / "made", folder)


def _compile(root: Path, folder: Path) -> list[str]:
    """Compile the modules of `root` in `folder`; return the paths of what was made, relative to `folder`."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        raise FileNotFoundError(f"there is no {compiler}")
    from mypyc.build import mypycify  # noqa: PLC0415  (not there where nothing is compiled)
    from setuptools import Distribution  # noqa: PLC0415 - same
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415 - same

    before, arguments = Path.cwd(), sys.argv
    shutil.copytree(root / "simqueue", folder / "source" / "simqueue", ignore=shutil.ignore_patterns("__pycache__"))
    os.chdir(folder / "source")
    sys.argv = ["setup.py"]
    try:
        options = [
            "--config-file=",
            "--ignore-missing-imports",
            "--follow-imports=silent",
            "--python-version",
            f"{sys.version_info.major}.{sys.version_info.minor}",
        ]
        extensions = mypycify([*options, *COMPILED], opt_level="2", debug_level="0", target_dir=str(folder / "c"))
        command = build_ext(Distribution({"name": "simqueue", "ext_modules": extensions}))
        command.build_lib, command.build_temp = str(folder), str(folder / "objects")
        command.parallel = os.cpu_count()
        command.ensure_finalized()
        command.run()
    finally:
        os.chdir(before)
        sys.argv = arguments
    return [str(Path(command.get_ext_filename(extension.name))) for extension in extensions]
