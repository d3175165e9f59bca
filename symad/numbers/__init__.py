"""The kinds of numbers on which graphs are evaluated: floats, Fractions, mpmath, SymPy, balls, dual numbers.

`number_domains` defines the operations of each kind, `values` evaluates nodes with them. `function_values`
computes functions of SymPy by the names in `symad.facts`, `exact_linalg` is linear algebra on objects, `dual`
and `dual_domain` are forward mode by operator overloading.
"""
