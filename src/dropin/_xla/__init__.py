"""The compiler's helpers, private to the package: XLA options, cache, batching, random numbers.

`benchmarks/xla.py` switches each of them off in turn and measures what it gains.
"""
