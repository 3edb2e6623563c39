"""Policies of published results, through the public interface for own policies."""

from pydantic import Field

from simqueue.schedulers import Chunked, Continuous, FirstComeFirstServed, scheduler


class ExclusiveSettings(Continuous.Settings):
    refill: int = Field(1, ge=1, description="free seats at which decoding stops for prompts")


@scheduler("exclusive")
class Exclusive(Continuous):
    """Exclusive batching (Zhang et al., arXiv 2606.00516): decode until `refill` seats are free, then only prompts."""

    Settings = ExclusiveSettings
    summary = "decodes only, until enough seats are free, then prompts only"
    steady_rules = ("compose",)

    def compose(self, step):
        if self.free_seats >= self.settings.refill or not self.running:
            step.admit_waiting()
        if not step.admitted:
            step.decode_all()


@scheduler("waves")
class Waves(Continuous):
    """Elastic batching (Yang et al., arXiv 2407.05347): requests leave when done, and none joins a running batch."""

    summary = "batches that shrink as requests finish; the next one starts when all have"
    steady_rules = ("may_admit",)

    def may_admit(self, job, step):
        return len(self.running) == len(step.admitted)


class WaitSettings(Continuous.Settings):
    threshold: int = Field(1, ge=1, description="prompts that are admitted together, and that must wait for it")


@scheduler("wait")
class Wait(Continuous):
    """WAIT for one type of request (Ao et al., arXiv 2504.11320): `threshold` prompts a step, or none.

    If nothing runs, fewer are admitted at once, so that the last ones do not wait for ever. At most `threshold`
    requests are in each stage of decoding, which bounds the memory that they can need. The rule counts waiting
    requests, so it is not steady.
    """

    Settings = WaitSettings
    summary = "admits prompts in lots: as many as the threshold, once that many wait"

    def may_admit(self, job, step):
        admitted = len(step.admitted)
        enough = admitted + len(self.waiting) >= self.settings.threshold
        idle = len(self.running) == admitted
        return admitted < self.settings.threshold and (enough or idle)


class BackOfTheQueue(FirstComeFirstServed):
    """Preempted requests go to the back."""

    steady_rules = ("put_back",)

    def put_back(self, job):
        self.push(job)


class RestartSettings(Chunked.Settings):
    back: bool = Field(False, description="whether an evicted request goes to the back of the queue")
    oldest: bool = Field(False, description="whether the oldest running request is evicted instead of the newest")


@scheduler("restart")
class Restart(Chunked):
    """Eviction loses all work: the evicted request makes its tokens again, one in each step."""

    Settings = RestartSettings
    summary = "an evicted request starts again from its prompt"
    steady_rules = ("queue", "chunk")

    def queue(self):
        return BackOfTheQueue() if self.settings.back else FirstComeFirstServed()

    def chunk(self, job, step):
        prompt_left = job.request.prompt_tokens - job.computed_tokens
        return min(step.budget, prompt_left if prompt_left > 0 else 1)

    def victim(self, step):
        order = self.running if self.settings.oldest else reversed(self.running)
        return next(job for job in order if not step.has_served(job))


@scheduler("look-ahead")
class LookAhead(Continuous):
    """Admits a request if it and all that run can finish in the pool (blocks of one token). It never evicts.

    Output lengths are known. Whether a request fits can change while steps repeat, so the rule is not steady.
    """

    summary = "admits a request only if no later step can need more than the pool"

    def may_admit(self, job, step):
        return peak([self._held_and_final(one) for one in self.running] + [_both(job, 0)]) <= self.kv.total

    def _held_and_final(self, job):
        return _both(job, self.decodes.tokens(job) if job.decoding else 0)


def _both(job, tokens):
    """Return the tokens that `job` holds in this step and in its last one."""
    prompt = job.request.prompt_tokens
    return max(prompt, tokens), prompt + job.request.output_tokens - 1


def peak(requests):
    """Return the most tokens held in any step, of pairs (held now, held in the last step); each gains one a step."""
    most, at_start = 0, 0
    longest_first = sorted(((final - held, held) for held, final in requests), reverse=True)
    for n, (left, held) in enumerate(longest_first, start=1):
        at_start += held
        most = max(most, at_start + n * left)
    return most
