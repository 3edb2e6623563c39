"""Where requests come from: arrival processes, length laws, traces, and requests listed one by one."""

from simqueue.workload.arrivals import AllAtOnce, ArrivalProcess, ArrivalSettings, ConstantArrivals, PoissonArrivals
from simqueue.workload.generate import Traffic, generate, generate_all
from simqueue.workload.inline import RequestSettings
from simqueue.workload.lengths import LengthLaw, LengthSettings
from simqueue.workload.settings import WorkloadSettings
from simqueue.workload.streams import stream
from simqueue.workload.traces import TraceSettings, trace_names, trace_rows

__all__ = [
    "AllAtOnce",
    "ArrivalProcess",
    "ArrivalSettings",
    "ConstantArrivals",
    "LengthLaw",
    "LengthSettings",
    "PoissonArrivals",
    "RequestSettings",
    "TraceSettings",
    "Traffic",
    "WorkloadSettings",
    "generate",
    "generate_all",
    "stream",
    "trace_names",
    "trace_rows",
]
