"""When requests arrive, where no trace says so."""

from typing import Annotated

from pydantic import Field

from simqueue.workload.arrivals.base import ArrivalProcess
from simqueue.workload.arrivals.grouped import BatchArrivals, RampArrivals
from simqueue.workload.arrivals.modulated import MmppArrivals, OnOffArrivals
from simqueue.workload.arrivals.renewal import GammaArrivals, PoissonArrivals, WeibullArrivals
from simqueue.workload.arrivals.simple import AllAtOnce, ConstantArrivals
from simqueue.workload.arrivals.varying import CurveArrivals, PiecewiseArrivals, SinusoidArrivals

ArrivalSettings = Annotated[
    PoissonArrivals
    | ConstantArrivals
    | GammaArrivals
    | WeibullArrivals
    | OnOffArrivals
    | MmppArrivals
    | SinusoidArrivals
    | PiecewiseArrivals
    | CurveArrivals
    | BatchArrivals
    | RampArrivals
    | AllAtOnce,
    Field(discriminator="process"),
]
"""How requests arrive: one of the processes, told apart by ``process``."""

__all__ = [
    "AllAtOnce",
    "ArrivalProcess",
    "ArrivalSettings",
    "BatchArrivals",
    "ConstantArrivals",
    "CurveArrivals",
    "GammaArrivals",
    "MmppArrivals",
    "OnOffArrivals",
    "PiecewiseArrivals",
    "PoissonArrivals",
    "RampArrivals",
    "SinusoidArrivals",
    "WeibullArrivals",
]
