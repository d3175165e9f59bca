"""Loops as compiled functions: their calls.

`loop_calls` prints the calls. `loops` is what they use at run time: the compiled functions, the BLAS product,
and the addresses of arrays.
"""
