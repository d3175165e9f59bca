"""Ops that act on each element.

Start with `apply`: any scalar function of SymPy, with its derivative. `arithmetic` and `powers` are sums,
products and powers, `selection` conditions and choices, `slopes` derivatives in better-conditioned forms,
`undefined` values that do not exist.
"""
