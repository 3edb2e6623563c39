"""A policy of your own and the policy that it changes: the more requests decode, the smaller the prompt chunks."""

from pydantic import Field

import simqueue as sq
from simqueue.schedulers import Chunked, scheduler


class GentleSettings(Chunked.Settings):
    tokens_per_decode: int = Field(128, ge=0, description="prompt tokens taken off a chunk per decoding request")


@scheduler("gentle")
class Gentle(Chunked):
    Settings = GentleSettings
    summary = "chunked, with smaller chunks the more requests decode"
    steady_rules = ("chunk",)

    def chunk(self, job, step):
        most = self.max_num_batched_tokens - self.settings.tokens_per_decode * self.decodes.seqs
        return min(super().chunk(job, step), max(most, 128))


lengths = {"distribution": "lognormal", "sigma": 0.8, "min": 1, "max": 4096}
scenario = {
    "step_time": {"kind": "linear", "overhead_s": 0.008, "per_prefill_token_s": 4e-5, "per_decode_s": 5e-5},
    "kv_cache": {"blocks": 8000},
    "workload": {
        "num_requests": 400,
        "arrivals": {"process": "poisson", "rate_rps": 8},
        "prompt_tokens": {**lengths, "median": 1200},
        "output_tokens": {**lengths, "median": 120},
    },
    "policies": {name: {"scheduler": name, "max_num_batched_tokens": 2048} for name in ("chunked", "gentle")},
}
print(sq.run(scenario).summary[["policy", "completed", "p99_ttft_ms", "p99_itl_ms"]].round(1).to_string(index=False))
