"""Nodes taken apart: sums of rational multiples, products of rational powers, and the numbers in them.

`linear_terms` is the start; `factoring` writes positive nodes as products of powers, for logarithms and
roots. `common_units` and `rounded_constants` are about coefficients: common units, and floats that stand for
simple numbers.
"""
