"""Output analysis: intervals over replications, warm-up, sequential stopping, comparisons, overload.

All functions take plain arrays. Intervals are computed only over independent values, which are the summaries of whole
replications. Successive requests of one run wait for each other, so an interval over requests would be far too narrow.
"""
