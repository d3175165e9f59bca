"""Ops that move, choose and reduce elements of arrays.

Start with `stacking` and `gathering`, which move elements (their transposes do too). `reduction` and
`ordering` are extremes, products and sorting, `positions` checked indices, `softmax` the exponentials of a
row divided by their sum, `random` counter-based random numbers.
"""
