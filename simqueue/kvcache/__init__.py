"""Where context lives: a pool of KV blocks, paged or reserved in one piece, with or without a prefix cache."""

from simqueue.kvcache.base import NO_HIT, Hit, KVCache
from simqueue.kvcache.freequeue import FreeQueue, VllmFreeQueue
from simqueue.kvcache.layouts import ContiguousKVCache, PagedKVCache
from simqueue.kvcache.prefix import PrefixKVCache
from simqueue.kvcache.settings import KVCacheSettings

__all__ = [
    "NO_HIT",
    "ContiguousKVCache",
    "FreeQueue",
    "Hit",
    "KVCache",
    "KVCacheSettings",
    "PagedKVCache",
    "PrefixKVCache",
    "VllmFreeQueue",
]
