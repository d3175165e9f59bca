"""Forms of SymPy that stay as written: elementwise functions of arrays, inverses of explicit matrices."""

from __future__ import annotations

from sympy.matrices.expressions import Inverse
from sympy.tensor.array import expressions


class ArrayElementwiseApplyFunc(expressions.ArrayElementwiseApplyFunc):
    """f(x) for every element of an array x; a subclass of SymPy's class.

    SymPy's class lacks an attribute that its method ``doit`` uses, and printing a product calls this method.
    """

    def _canonicalize(self) -> ArrayElementwiseApplyFunc:
        return self


class HeldInverse(Inverse):
    """A⁻¹ as SymPy's `Inverse`, for A with explicit entries.

    SymPy's class is evaluated, entry by entry as formulas, whenever ``doit`` is called; printing a product
    calls this method, and the row reduction of a 5×5 matrix of functions takes hours.
    ``Inverse(*M.args).doit()`` evaluates it.
    """

    def doit(self, **hints: bool) -> HeldInverse:
        """The object itself."""
        return self

    def _eval_transpose(self) -> None:
        return None

    def _eval_adjoint(self) -> None:
        return None
