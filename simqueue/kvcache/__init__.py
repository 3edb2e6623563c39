"""Where context lives: a pool of KV blocks, paged or reserved in one piece."""

from simqueue.kvcache.base import KVCache
from simqueue.kvcache.contiguous import ContiguousKVCache
from simqueue.kvcache.paged import PagedKVCache
from simqueue.kvcache.settings import KVCacheSettings

__all__ = ["ContiguousKVCache", "KVCache", "KVCacheSettings", "PagedKVCache"]
