"""Attention and sums over pairs as NumPy code, by tiles, without an array over all pairs.

`attention_printer` and `pair_sum_printer` write the ops, `formulas` their scores and pair functions.
"""
