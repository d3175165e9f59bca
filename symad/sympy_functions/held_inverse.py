"""The inverse of a matrix with explicit entries, kept unevaluated."""

from __future__ import annotations

from sympy.matrices.expressions import Inverse


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
