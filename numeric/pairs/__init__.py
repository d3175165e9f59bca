"""Attention and sums over pairs on the CPU, by tiles: scores, pair functions, and their printers.

`attention_printer` and `pair_sum_printer` write the ops as NumPy, without an array over all pairs.
`eager_attention` and `eager_pairwise` are the same ops called at once on arrays. `scores` and
`pair_functions` read users' formulas, `stable_sympy` and `sympy_to_numpy` write them well conditioned,
`intervals` bounds them.
"""
