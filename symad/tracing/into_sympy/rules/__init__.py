"""What each op is in SymPy, one family a file; importing this package registers the answers."""

from symad.tracing.into_sympy.rules import arrays, elementwise, fused, linalg, loops, sparse

__all__ = ["arrays", "elementwise", "fused", "linalg", "loops", "sparse"]
