"""Nodes as SymPy expressions.

Start with `nodes`: `to_sympy`. The forms of the ops are in `rules`; `arrays` and `forms` construct them if
SymPy has a class for them, and `op_expressions` wraps the ops without such a class.
"""
