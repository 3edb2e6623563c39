"""Dynamo's KV router: the worker at which a request adds the least work, by its cache and by what is open there."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from simqueue.request import Request
from simqueue.routing.base import AnySettings, Choice, Ranking, Router, Signal, View, drawn, healthy
from simqueue.routing.blocks import Blocks, Key
from simqueue.routing.dynamo.costs import Weights, Worker, chances, costs
from simqueue.routing.dynamo.keys import DynamoSettings
from simqueue.routing.dynamo.loads import Loads
from simqueue.routing.recent import Recent

LOWEST, SAMPLED, QUEUE = "lowest cost", "sampled by cost", "all are busy"


class KvRouter(Router):
    """The lowest cost; equal costs alike. Costs are in blocks of the first replica's size."""

    settings: DynamoSettings

    def __init__(self, settings: AnySettings, random: Random) -> None:
        super().__init__(settings, random)
        given = self.settings
        self.loads = Loads()
        self._blocks = Blocks()
        self._recent = None if given.use_kv_events else Recent(given.router_ttl_secs)
        self._block_size = 0
        self._temperature = given.router_temperature
        self._threshold = given.router_queue_threshold
        self._weights = Weights(
            overlap_score_credit=given.overlap_score_credit,
            overlap_score_credit_decay=given.overlap_score_credit_decay,
            prefill_load_scale=given.prefill_load_scale,
            decode_active_request_weight=given.decode_active_request_weight,
        )

    @property
    def reads(self) -> frozenset[Signal]:
        """KV events, or nothing of the engines if the index is approximate."""
        return frozenset({Signal.CACHED}) if self._recent is None else frozenset()

    def rank(self, request: Request, replicas: Sequence[View], now_s: float) -> Ranking:
        """Return the chances by cost; none while all replicas have more prefill tokens open than the threshold."""
        able = healthy(replicas)
        workers, of_costs = self._costs(request, replicas, able, now_s)
        scores = _scores(workers, of_costs, request.prompt_tokens, self._block_size)
        if all(map(self._is_busy, able)):
            return Ranking({}, QUEUE, scores)
        return Ranking(chances(of_costs, self._temperature), SAMPLED if self._temperature else LOWEST, scores)

    def choose(self, request: Request, replicas: Sequence[View], now_s: float) -> Choice:
        """Draw by the same chances, without what only explanations need."""
        able = healthy(replicas)
        if self._threshold is not None and all(map(self._is_busy, able)):
            return Choice(None, QUEUE)
        _, of_costs = self._costs(request, replicas, able, now_s)
        drew = drawn(self.random, chances(of_costs, self._temperature))
        return Choice(drew, SAMPLED if self._temperature else LOWEST)

    def dispatched(self, request: Request, replica: View, now_s: float) -> None:
        """Book the prompt tokens that are not cached, and all its blocks."""
        block_size = self._block_size
        keys = self._blocks.of(request, block_size)
        cached = self._overlaps(request, keys, [replica], now_s)[replica.number] * block_size
        self.loads.book(request.request_id, replica.number, keys, max(0, request.prompt_tokens - cached))
        if self._recent is not None:
            self._recent.add(keys, replica.number, now_s)

    def first_token(self, request: Request, replica: View, now_s: float) -> None:
        """No prompt token of the request is open any more."""
        self.loads.prefill_complete(request.request_id)

    def finished(self, request: Request, replica: View, now_s: float, *, tokens: int, served: bool) -> None:
        """Free what was booked."""
        self.loads.free(request.request_id)

    def joined(self, replica: View, now_s: float) -> None:
        """Start with an empty index for it."""
        if self._recent is not None:
            self._recent.drop(replica.number)

    def left(self, replica: View, now_s: float) -> None:
        """Drop it from the index."""
        self.joined(replica, now_s)

    def _costs(
        self, request: Request, replicas: Sequence[View], able: Sequence[View], now_s: float
    ) -> tuple[dict[int, Worker], dict[int, float]]:
        """Return what the formula needs of each healthy replica, and the costs."""
        block_size = self._block_size = replicas[0].block_size
        keys = self._blocks.of(request, block_size)
        overlaps = self._overlaps(request, keys, able, now_s)
        workers = {number: self.loads.with_prompt(number, keys, blocks) for number, blocks in overlaps.items()}
        return workers, costs(workers, request.prompt_tokens, block_size, self._weights)

    def _overlaps(self, request: Request, keys: tuple[Key, ...], able: Sequence[View], now_s: float) -> dict[int, int]:
        """Return how many whole blocks at the beginning of the prompt each replica has."""
        if self._recent is None:
            return {one.number: min(len(keys), one.cached_tokens(request) // self._block_size) for one in able}
        matched = self._recent.matched(keys, now_s)
        return {one.number: matched.get(one.number, 0) for one in able}

    def _is_busy(self, replica: View) -> bool:
        threshold, budget = self._threshold, replica.max_num_batched_tokens
        if threshold is None or budget is None:
            return False
        return self.loads.open_prefill_tokens(replica.number) > threshold * budget


def _scores(
    workers: dict[int, Worker], of_costs: dict[int, float], prompt_tokens: int, block_size: int
) -> dict[str, dict[int, float]]:
    return {
        "overlap_blocks": {number: w.device_blocks for number, w in workers.items()},
        "prefill_tokens": {
            number: w.open_prefill_tokens + max(0, prompt_tokens - w.device_blocks * block_size)
            for number, w in workers.items()
        },
        "decode_blocks": {number: w.decode_blocks for number, w in workers.items()},
        "requests": {number: w.requests for number, w in workers.items()},
        "cost": of_costs,
    }
