"""Ops that move, reduce and contract arrays.

Start with `sources`: inputs and constants. `contraction` is einsum, the only product between arrays;
`shaping`, `stacking` and `gathering` move elements (each the transpose of another), `reduction` and
`ordering` are extremes, products and sorting, `positions` are checked indices.
"""
