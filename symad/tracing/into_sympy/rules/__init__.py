"""The SymPy forms of the ops, one family in each file; importing this package registers them."""

from symad.tracing.into_sympy.rules import arrays, elementwise, fused, linalg, loops, sparse

__all__ = ["arrays", "elementwise", "fused", "linalg", "loops", "sparse"]
