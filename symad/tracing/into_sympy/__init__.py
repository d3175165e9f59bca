"""Nodes as SymPy expressions.

`nodes` is the start: `to_sympy`. The forms of the ops stand in `rules`; `arrays` and `forms` write what
SymPy has a word for, and `op_expressions` wraps the ops for which it has none.
"""
