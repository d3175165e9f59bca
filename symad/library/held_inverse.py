"""The inverse of a matrix with explicit entries, which SymPy does not compute by itself."""

from __future__ import annotations

from sympy.matrices.expressions import Inverse


class HeldInverse(Inverse):
    """A⁻¹ as SymPy's `Inverse`, where A has explicit entries.

    SymPy's own is computed, entry by entry as formulas, whenever ``doit`` is called; printing a product calls
    that method, and the row reduction of a 5×5 matrix of functions takes hours. ``Inverse(*M.args).doit()``
    asks for it.
    """

    def doit(self, **hints: bool) -> HeldInverse:
        """As it is."""
        return self

    def _eval_transpose(self) -> None:
        return None

    def _eval_adjoint(self) -> None:
        return None
