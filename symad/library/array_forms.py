"""SymPy's function of an array, element by element, so that it can be evaluated and printed."""

from __future__ import annotations

from sympy.tensor.array import expressions


class ArrayElementwiseApplyFunc(expressions.ArrayElementwiseApplyFunc):
    """f(x) for every element of an array x; as SymPy's.

    SymPy's own lacks what its method ``doit`` calls, and printing a product calls that method.
    """

    def _canonicalize(self) -> ArrayElementwiseApplyFunc:
        return self
