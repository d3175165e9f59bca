"""Attention and sums over pairs as NumPy code, by tiles, without an array over all pairs.

`attention_printer` and `pair_sum_printer` write the ops, `sympy_to_numpy` their scores and pair functions.
"""
