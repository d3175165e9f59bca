"""Attention and sums over pairs on the CPU: the formulas of their scores and pair functions.

Start with `scores` and `pair_functions`, which trace users' formulas. `stable_sympy` writes them in
well-conditioned form, `scalar_formulas` makes graphs of scalars of them, from which all targets print, and
`intervals` computes their bounds. `symad.numeric.numpy_arrays.pairs` prints the ops.
"""
