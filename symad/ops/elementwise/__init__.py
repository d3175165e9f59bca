"""Ops that act on each element.

`apply` is the start: any scalar function of SymPy, with its derivative. `arithmetic` and `powers` are sums,
products and powers, `selection` conditions and choices, `slopes` derivatives in better conditioned forms,
`undefined` what has no value.
"""
