"""The SymPy forms of the ops, one family in each file; importing this package registers them.

The files have the names of the folders of `symad.ops`; ops that stand above tracing have their forms in
their own files. A rule answers the question `sympy_form` of
`symad.core.questions`; `symad.tracing.into_sympy.nodes` asks it for all nodes of a graph.
"""

from symad.tracing.into_sympy.rules import arrays, elementwise, higher_order, linalg, sparse

__all__ = ["arrays", "elementwise", "higher_order", "linalg", "sparse"]
