"""The group of commands `list`."""

from simqueue.cli.command import command
from simqueue.cli.options import Import, Json


@command("packaged:policies", group="list")
def policies(import_: Import = None, json_: Json = False) -> None:
    """Schedulers: `scheduler: NAME` in a policy."""


@command("packaged:engines", group="list")
def engines(json_: Json = False) -> None:
    """Engines by version: `engine: NAME, version: "X"` in a policy."""


@command("packaged:routers", group="list")
def routers(import_: Import = None, json_: Json = False) -> None:
    """Routers of a fleet: `fleet: {replicas: N, router: NAME}`."""


@command("packaged:models", group="list")
def models(json_: Json = False) -> None:
    """Models: `model: NAME`."""


@command("packaged:gpus", group="list")
def gpus(json_: Json = False) -> None:
    """GPUs: `gpu: NAME`."""


@command("packaged:presets", group="list")
def presets(json_: Json = False) -> None:
    """Step-time presets: `step_time: {kind: roofline, preset: NAME}`."""


@command("packaged:traces", group="list")
def traces(json_: Json = False) -> None:
    """Traces in the package: `trace: {name: NAME}`."""


@command("packaged:scenarios", group="list")
def scenarios(json_: Json = False) -> None:
    """Scenarios in the package: `simqueue run NAME`."""
