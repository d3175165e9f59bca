"""Attention and sums over pairs of arrays, called at once.

`attention` and `pairwise` are the functions of `symad.numeric`; `calls` keeps the lowered code by shapes
and formulas.
"""
