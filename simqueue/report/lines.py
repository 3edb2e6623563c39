"""The lines of a comparison: which columns of the summary are shown, in which order, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from simqueue.results.latencies import ALWAYS, GOOD, MET, MODEL_ERROR, OF_ALL, OVERLOADED_SHARE, column
from simqueue.results.objectives import value_column
from simqueue.workload.slo import of_run

if TYPE_CHECKING:
    from simqueue.figures.view import ResultView
    from simqueue.results.summary import Value

Format = Callable[["Value"], str]
Row = Mapping[str, "Value"]
Better = Literal["", "higher", "lower"]
UNDEFINED: Final = "-"
UNKNOWN: Final = "unknown"


def count(value: Value) -> str:
    """Return a whole number with thousands separators."""
    return f"{value:,}" if isinstance(value, int) else UNDEFINED


def count_or_text(value: Value) -> str:
    """Return a whole number with thousands separators, or a text as it is."""
    return value if isinstance(value, str) else count(value)


def share(value: Value) -> str:
    """Return a share in percent."""
    return f"{100 * value:.1f}%" if isinstance(value, int | float) else UNDEFINED


def text(value: Value) -> str:
    """Return a text."""
    return value if isinstance(value, str) else UNDEFINED


def yes(value: Value) -> str:
    """Return whether something is so; YES is in capitals because it calls for attention."""
    return UNKNOWN if value is None else "YES" if value else "no"


def number(value: Value) -> str:
    """Return a number with at least three significant digits."""
    if not isinstance(value, int | float):
        return UNDEFINED
    digits = 0 if abs(value) >= 1000 or value == 0 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the comparison: a column of the summary.

    Attributes
    ----------
    label : str
    column : str
        Name of the column.
    shown : callable
        Returns a value as text.
    unit : str
        Unit of the values, or empty.
    better : {"", "higher", "lower"}
        Which values are better; empty if neither is.
    optional : bool
        Whether the line is left out if it says nothing: if all values are undefined or `usual`.
    usual : value
        The value that says nothing; None if every value says something.
    of_classes : bool
        Whether the line is shown for each workload and request class too.
    met : str
        Name of the column that says whether the value is within its limit; empty without a limit.
    """

    label: str
    column: str
    shown: Format = number
    unit: str = ""
    better: Better = ""
    optional: bool = False
    usual: Value = 0
    of_classes: bool = False
    met: str = ""

    @property
    def titled(self) -> str:
        """The label with the unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    def says_nothing(self, rows: Iterable[Row]) -> bool:
        """Return whether the line can be left out for these rows."""
        return self.optional and all(row.get(self.column) in (None, self.usual) for row in rows)


def _from_client(label: str, metric: str, statistics: Sequence[str]) -> tuple[Line, ...]:
    """Return the lines of a latency that counts from when the client wanted the request."""
    return tuple(
        Line(
            f"{label} {kind.replace('median', 'p50')}",
            f"{kind}_{metric}_ms",
            unit="ms",
            better="lower",
            optional=True,
            usual=None,
        )
        for kind in statistics
    )


SECTIONS: Final[Mapping[str, tuple[Line, ...]]] = {
    "Requests": (
        Line("completed", "completed", count, of_classes=True),
        Line("rejected", "rejected", count, better="lower", optional=True, of_classes=True),
        Line("timed out", "timed_out", count, better="lower", optional=True, of_classes=True),
        Line("unfinished", "unfinished", count, optional=True),
    ),
    "Throughput": (
        Line("throughput", "request_throughput", unit="req/s", better="higher", of_classes=True),
        Line("output", "output_throughput", unit="tok/s", better="higher"),
        Line("goodput", "request_goodput", unit="req/s", better="higher", optional=True, usual=None, of_classes=True),
        Line("good requests", GOOD, share, better="higher", optional=True, usual=None, of_classes=True),
    ),
    "Time to first token": (
        Line("TTFT mean", "mean_ttft_ms", unit="ms", better="lower", of_classes=True),
        Line("TTFT p50", "median_ttft_ms", unit="ms", better="lower"),
        Line("TTFT p95", "p95_ttft_ms", unit="ms", better="lower", of_classes=True),
        Line("TTFT p99", "p99_ttft_ms", unit="ms", better="lower"),
    ),
    "Time between tokens": (
        Line("TPOT mean", "mean_tpot_ms", unit="ms", better="lower", of_classes=True),
        Line("TPOT p95", "p95_tpot_ms", unit="ms", better="lower"),
        Line("ITL p99", "p99_itl_ms", unit="ms", better="lower"),
        Line("ITL max", "max_itl_ms", unit="ms", better="lower"),
    ),
    "Whole response": (
        Line("E2EL p50", "median_e2el_ms", unit="ms", better="lower", of_classes=True),
        Line("E2EL p95", "p95_e2el_ms", unit="ms", better="lower", of_classes=True),
    ),
    "Wait at the client": (
        Line("client wait mean", "mean_client_wait_ms", unit="ms", better="lower", optional=True, of_classes=True),
        *_from_client("client wait", "client_wait", ("median", "p95", "p99")),
        *_from_client("wait + TTFT", "wanted_ttft", ("mean", "median", "p99")),
        *_from_client("wait + E2EL", "wanted_e2el", ("mean", "median", "p99")),
    ),
    "Machine": (
        Line("preemptions", "preemptions", count, better="lower", optional=True),
        Line("KV peak", "kv_peak_share", share),
        Line("KV pool", "kv_pool_tokens", count, unit="tok", optional=True, usual=None),
        Line("max request", "longest_request_tokens", count_or_text, unit="tok", optional=True, usual=None),
        Line("prefix hits", "prefix_hit_rate", share, better="higher", optional=True),
        Line("GPU busy", "gpu_busy_share", share),
    ),
    "Fleet": (
        Line("replicas", "replicas", count, optional=True, usual=None),
        Line("imbalance, load", "imbalance_load", better="lower", optional=True, usual=None),
        Line("imbalance, KV", "imbalance_kv", better="lower", optional=True, usual=None),
        Line("router mean", "mean_router_ms", unit="ms", better="lower", optional=True),
        Line("resent", "resent", count, better="lower", optional=True),
        Line("lost", "lost", count, better="lower", optional=True),
        Line("discarded", "discarded_tokens", count, unit="tok", better="lower", optional=True),
    ),
    "Load and run": (
        Line("load", "load", better="lower"),
        Line("limited by", "binding", text),
        Line("overloaded", "overloaded", yes),
        Line("bounded", "bounded", yes, optional=True, usual=False),
        Line("time overloaded", OVERLOADED_SHARE, share, better="lower", optional=True, usual=None),
        Line("TPOT model error", MODEL_ERROR[0], unit="%", better="lower", optional=True, usual=None),
        Line("step times are of", MODEL_ERROR[1], text, optional=True, usual="in range"),
        Line("measured", "window", text, optional=True, usual="whole run"),
        Line("warm-up requests", "warmup_excluded", count, optional=True),
        Line("replications", "replications", count, optional=True, usual=1),
    ),
}
"""The usual lines by section. A terminal separates sections by a blank line, a page by their titles."""

_RATES: Final = {
    "request_throughput": "throughput (req/s)",
    "output_throughput": "output (tok/s)",
    "total_token_throughput": "prompts and output (tok/s)",
    "request_goodput": "goodput (req/s)",
}


def metric_label(name: str) -> str:
    """Return the label of a column of the summary that is a latency in milliseconds or a rate, with its unit."""
    statistic, _, metric = name.removesuffix("_ms").partition("_")
    if name in _RATES or not name.endswith("_ms"):
        return _RATES.get(name, name)
    shown = metric.upper() if metric in _TITLES else metric.replace("_", " ")
    return f"{shown} {'p50' if statistic == 'median' else statistic} (ms)"


_TITLES: Final[Mapping[str, str]] = {
    "ttft": "Time to first token",
    "tpot": "Time between tokens",
    "itl": "Time between tokens",
    "e2el": "Whole response",
}


def sections_of(result: ResultView) -> dict[str, tuple[Line, ...]]:
    """Return the lines of a result by section, with its limits, and with the latencies that its scenario chooses."""
    chosen = result.scenario.get("summary") or {}
    metrics, percentiles = chosen.get("metrics"), chosen.get("percentiles")
    sections = dict(SECTIONS)
    if metrics or percentiles:
        own = list(_latencies(metrics or OF_ALL, percentiles or ALWAYS))
        latencies = {title: tuple(line for at, line in own if at == title) for title in _TITLES.values()}
        sections = {title: latencies.get(title, lines) for title, lines in sections.items()}
    first = {title: lines for title, lines in sections.items() if title in ("Requests", "Throughput")}
    return {**first, "Objectives": _objectives(result), **sections}


def _latencies(metrics: Sequence[str], percentiles: Sequence[float]) -> Iterator[tuple[str, Line]]:
    """Yield the lines of latencies, each with the title of its section."""
    for metric in metrics:
        name, of_classes = metric.upper(), metric != "itl"
        line = partial(Line, unit="ms", better="lower", of_classes=of_classes)
        yield _TITLES[metric], line(f"{name} mean", f"mean_{metric}_ms")
        for q in percentiles:
            yield _TITLES[metric], line(f"{name} p{q:g}", column(metric, q))
        if metric == "itl":
            yield _TITLES[metric], line("ITL max", "max_itl_ms")


def _objectives(result: ResultView) -> tuple[Line, ...]:
    """Return a line for each limit of the run."""
    return tuple(_limited(name, f"<= {limit_ms:g}") for name, limit_ms in of_run(result.slo).items())


def class_objectives(result: ResultView) -> dict[str, Line]:
    """Return a line for each limit of a run that a workload or class has, by the name of the limit."""
    names = [name for limits in result.class_slo.values() for name in of_run(limits) if not name.endswith("_itl_ms")]
    return {name: _limited(name, "objective") for name in dict.fromkeys(names)}


def _limited(name: str, added: str) -> Line:
    """Return the line of the value that has a limit."""
    kind, metric, _ = name.split("_")
    label = f"{metric.upper()} {kind.replace('median', 'p50')} {added}"
    return Line(label, value_column(name), unit="ms", better="lower", met=MET + name)
