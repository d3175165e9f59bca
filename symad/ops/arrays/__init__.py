"""Ops that move, reduce and contract arrays.

`sources` is the start: inputs and constants. `contraction` is einsum, the one product between arrays;
`shaping`, `stacking` and `gathering` move elements (each the transpose of another), `reduction` and
`ordering` are sums, extremes and sorting, `positions` checked places.
"""
