"""Ops that act on each element.

Start with `apply`: any scalar function of SymPy, with its derivative. `powers` are powers, `selection`
conditions and choices, `slopes` derivatives in better-conditioned forms, `undefined` values that do not
exist, `products` the product rule, `transposes` the rules of reverse mode for sums and products.
"""
