"""How sure one can be: intervals over replications, warm-up, sequential stopping, comparisons, overload.

Everything works on plain arrays. An interval is only ever made over independent values: the summaries of whole
replications. Successive requests of one run wait for each other, and an interval over them is far too narrow.
"""
