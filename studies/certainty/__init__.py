"""How certain results are: coverage of intervals, overloads found, errors of the capacity law, power of `verify`.

Each part is a module with ``write``, which measures, writes its page and figures to a folder, and returns their paths.
"""
