"""Loops as compiled functions at run time.

`loops` is what calls use: the compiled functions, the BLAS product, and the addresses of arrays.
"""
