"""Attention and sums over pairs on the CPU, by tiles: scores, pair functions, and their printers.

`attention_printer` and `pair_sum_printer` write the ops as NumPy code, without an array over all pairs.
`eager_attention` and `eager_pairwise` call the same ops directly on arrays. `scores` and `pair_functions`
trace users' formulas, `stable_sympy` and `sympy_to_numpy` write them in well-conditioned form, and
`intervals` computes bounds of them.
"""
