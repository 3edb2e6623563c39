"""The group of commands `list`."""

from simqueue.cli.command import command


@command("packaged:policies", group="list")
def policies() -> None:
    """Schedulers: `scheduler: NAME` in a policy."""


@command("packaged:engines", group="list")
def engines() -> None:
    """Engines by version: `engine: NAME, version: "X"` in a policy."""


@command("packaged:models", group="list")
def models() -> None:
    """Models: `model: NAME`."""


@command("packaged:gpus", group="list")
def gpus() -> None:
    """GPUs: `gpu: NAME`."""


@command("packaged:presets", group="list")
def presets() -> None:
    """Step-time presets: `step_time: {kind: roofline, preset: NAME}`."""


@command("packaged:traces", group="list")
def traces() -> None:
    """Traces in the package: `trace: {name: NAME}`."""


@command("packaged:scenarios", group="list")
def scenarios() -> None:
    """Scenarios in the package: `simqueue run NAME`."""
