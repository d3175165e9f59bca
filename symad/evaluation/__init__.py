"""Evaluation of graphs: on floats, Fractions, mpmath numbers, SymPy expressions and dual numbers.

`evaluate` is the entry point: the call of a graph. `number_domains` defines the operations of each kind of
number, `numpy_names` maps functions of SymPy to functions of NumPy or SciPy, `exact_linalg` is linear algebra
on objects, `dual` and `dual_domain` are forward mode by operator overloading, `node_numbers` scalar nodes as
numbers.
"""
