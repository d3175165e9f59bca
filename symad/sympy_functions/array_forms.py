"""SymPy's elementwise function of an array, in a form that can be evaluated and printed."""

from __future__ import annotations

from sympy.tensor.array import expressions


class ArrayElementwiseApplyFunc(expressions.ArrayElementwiseApplyFunc):
    """f(x) for every element of an array x; a subclass of SymPy's class.

    SymPy's class lacks an attribute that its method ``doit`` uses, and printing a product calls this method.
    """

    def _canonicalize(self) -> ArrayElementwiseApplyFunc:
        return self
