"""Limits of what is read: above the largest real file, and low enough that nothing ends a session or hangs it.

Each limit has its reason: the largest real file that was thought of, and what a larger one would cost.
"""

from __future__ import annotations

from typing import Final

_MIB: Final = 2**20

MOST_YAML_BYTES: Final = _MIB
"""Bytes of a YAML file: a scenario, a GPU, a preset. The largest real one is a resolved scenario with a thousand listed
requests, some 0.5 MB. Parsing in Python takes some 10 s a megabyte."""

MOST_YAML_ENTRIES: Final = 20_000
"""Entries of a YAML file, counted as its lines, commas and opening brackets. A scenario with two thousand listed
requests has 12,000; longer lists are traces. Each entry takes some 0.1 ms."""

MOST_YAML_WORDS: Final = 100_000
"""Words of a YAML file, comments included: a book has as many. Long texts are as slow to parse as long lists."""

MOST_YAML_VALUES: Final = 50_000
"""Values of a YAML file with all aliases written out; a file cannot have as many without aliases."""

MOST_KEYS: Final = 1_000
"""Keys of one mapping in a YAML file. The largest real one has a hundred policies or classes."""

MOST_DEPTH: Final = 64
"""Levels of lists and mappings in each other, in YAML and in JSON. Scenarios have up to ten, files of models six."""

MOST_JSON_BYTES: Final = 64 * _MIB
"""Bytes of a JSON file: a model's config.json, a recorded schedule, what a saved result says about itself. A
config.json with a list of modules that are not quantised has 1 MB, a summary of 100 policies with 100 classes 20 MB."""

MOST_BENCH_BYTES: Final = 512 * _MIB
"""Bytes of the JSON file of a benchmark. One of 10,000 requests with all gaps between tokens and all texts has
200 MB."""

MOST_TABLE_BYTES: Final = 256 * _MIB
"""Bytes of a CSV table that is read whole: measurements, lengths, curves. Ten million lengths have 100 MB."""

MOST_TRACE_BYTES: Final = 16 * 1024 * _MIB
"""Bytes of a trace. The largest public one, a week of a service with 44 million requests, has some 2 GB."""

MOST_LINE_BYTES: Final = 16 * _MIB
"""Bytes of one line of a text file: a JSON object with a prompt of a million tokens as text has 5 MB."""

MOST_STEP_TOKENS: Final = 1_000_000_000
"""Tokens of the budget of one step, as many as a request can have. Servers use up to some 100,000."""

MOST_COLUMNS: Final = 1_000
"""Columns of a CSV file. Exports of monitoring systems have up to 200."""

MOST_ROWS: Final = 100_000_000
"""Rows of a Parquet file or a data set: as many requests as a workload can have."""
