"""The SymPy forms of the ops, one family in each file; importing this package registers them.

The files have the names of the folders of `symad.ops`. A rule answers the question `sympy_form` of
`symad.core.questions`; `symad.tracing.into_sympy.nodes` asks it for all nodes of a graph.
"""

from symad.tracing.into_sympy.rules import arrays, elementwise, fused, linalg, loops, sparse

__all__ = ["arrays", "elementwise", "fused", "linalg", "loops", "sparse"]
