"""Attention and sums over pairs on the CPU: the formulas of their scores and pair functions.

Start with `scores` and `pair_functions`, which trace users' formulas. `stable_sympy` writes them in
well-conditioned form, `intervals` computes bounds of them. `symad.numeric.numpy_arrays.pairs` prints the
ops.
"""
