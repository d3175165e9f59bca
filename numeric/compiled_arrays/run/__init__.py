"""Loops whose steps are compiled kernels: which loops are compiled, and how they are called.

`loop_calls` prints the calls: memory for the results, and the arrays that a loop reads. `loops` is what
they use at run time: the compiled functions, the BLAS product, and the addresses of arrays.
"""
