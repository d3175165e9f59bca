"""Functions of whole matrices that models need and SymPy lacks, as matrix expressions.

Their shapes follow the shapes of their arguments, symbols included; entries are ordinary expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import sympy
from sympy.matrices.expressions.matexpr import MatrixElement

from symad.core.arrays import Array, Axis
from symad.core.dims import Dim, Shape
from symad.core.expressions import as_sympy
from symad.core.given import earlier_names
from symad.errors import ShapeError

if TYPE_CHECKING:
    from sympy.printing.printer import Printer


def explicit_sum(term: Callable[[Array], Array], count: Dim) -> sympy.Expr:
    """Σ_{k < count} term(k): expanded for a number, a Sum for a symbol."""
    if as_sympy(count).is_Integer:
        return sympy.Add(*[term(sympy.Integer(k)) for k in range(int(count))])
    k = sympy.Dummy("k", integer=True)
    return sympy.Sum(term(k), (k, 0, count - 1))


def exponential_sum(x: sympy.MatrixExpr, axis: Axis, i: sympy.Expr, j: sympy.Expr) -> sympy.Expr:
    """Σ exp(x) over all entries, column j (axis 0), or row i (axis 1)."""
    rows, columns = x.shape

    def column(c: sympy.Expr) -> sympy.Expr:
        return explicit_sum(lambda r: sympy.exp(x[r, c]), rows)

    if axis is None:
        return explicit_sum(column, columns)
    return column(j) if axis == 0 else explicit_sum(lambda c: sympy.exp(x[i, c]), columns)


class AxisFunction(sympy.MatrixExpr):
    """A function of a matrix along its rows (axis 1), its columns (axis 0), or all of it."""

    name = ""

    def __new__(cls, x: sympy.MatrixExpr, axis: Dim | None = None) -> sympy.MatrixExpr:
        """``x``: a matrix expression; ``axis``: 0, 1 or None."""
        axis = None if axis is None else sympy.Integer(axis)
        if axis not in (None, 0, 1):
            raise ShapeError(f"{cls.name}({x}, axis={axis}): a matrix has the axes 0 and 1")
        return super().__new__(cls, x) if axis is None else super().__new__(cls, x, axis)

    @property
    def matrix(self) -> sympy.MatrixExpr:
        """The argument."""
        return self.args[0]

    @property
    def axis(self) -> int | None:
        """0, 1 or None."""
        return int(self.args[1]) if len(self.args) > 1 else None

    @property
    def shape(self) -> Shape:
        """The shape of the argument."""
        return self.matrix.shape

    def _sympystr(self, printer: Printer) -> str:
        return f"{self.name}({printer._print(self.matrix)}, axis={self.axis})"

    def _latex(self, printer: Printer) -> str:
        head = rf"\operatorname{{{self.name}}}".replace("_", r"\_")
        along = {None: "all", 0: "columns", 1: "rows"}[self.axis]
        return rf"{head}_{{\text{{{along}}}}}\left({printer._print(self.matrix)}\right)"


class MatrixSoftmax(AxisFunction):
    """exp(X) / Σ exp(X)."""

    name = "softmax"

    def _entry(self, i: sympy.Expr, j: sympy.Expr, **hints: bool) -> sympy.Expr:
        return sympy.exp(self.matrix[i, j]) / exponential_sum(self.matrix, self.axis, i, j)


class MatrixLogSoftmax(AxisFunction):
    """X − log Σ exp(X)."""

    name = "log_softmax"

    def _entry(self, i: sympy.Expr, j: sympy.Expr, **hints: bool) -> sympy.Expr:
        return self.matrix[i, j] - sympy.log(exponential_sum(self.matrix, self.axis, i, j))


class LogSumExpAlong(AxisFunction):
    """log Σ exp(X) of each column, (1, m), or of each row, (n, 1)."""

    name = "logsumexp"

    @property
    def shape(self) -> Shape:
        """The axis has length 1."""
        rows, columns = self.matrix.shape
        return (sympy.S.One, columns) if self.axis == 0 else (rows, sympy.S.One)

    def _entry(self, i: sympy.Expr, j: sympy.Expr, **hints: bool) -> sympy.Expr:
        return sympy.log(exponential_sum(self.matrix, self.axis, i, j))


class MatrixLogSumExp(sympy.Expr):
    """log Σ exp(X) over all entries of a matrix: a scalar."""

    is_commutative = True

    def __new__(cls, x: sympy.MatrixExpr) -> sympy.MatrixExpr:
        """``x``: a matrix expression."""
        return super().__new__(cls, x)

    @property
    def matrix(self) -> sympy.MatrixExpr:
        """The argument."""
        return self.args[0]

    def expanded(self) -> sympy.Expr:
        """The logarithm of the sum, in elementary functions."""
        return sympy.log(exponential_sum(self.matrix, None, None, None))

    def _eval_rewrite(
        self, rule: type[sympy.Basic], args: tuple[sympy.Expr, ...], **hints: bool
    ) -> sympy.Expr:
        return self.expanded()

    def _eval_derivative(self, symbol: sympy.Basic) -> sympy.Expr:
        return self.expanded().diff(symbol)

    def _eval_evalf(self, prec: int) -> sympy.Expr:
        return self.expanded()._eval_evalf(prec)

    def _eval_is_extended_real(self) -> bool:
        return True

    def _sympystr(self, printer: Printer) -> str:
        return f"logsumexp({printer._print(self.matrix)})"

    def _latex(self, printer: Printer) -> str:
        return rf"\operatorname{{logsumexp}}\left({printer._print(self.matrix)}\right)"


class Lookup(sympy.MatrixExpr):
    """Rows of a table: entry (i, j) is table[indices[i], j]."""

    def __new__(
        cls, table: sympy.MatrixExpr, indices: sympy.Basic | sympy.MatrixBase | Sequence[Dim]
    ) -> Lookup:
        """``table``: (rows, d); ``indices``: a column or row of integers, or an IndexedBase of shape (n,)."""
        if isinstance(indices, (list, tuple)):
            indices = sympy.ImmutableDenseMatrix(len(indices), 1, list(indices))
        if not isinstance(indices, (sympy.IndexedBase, sympy.MatrixExpr, sympy.MatrixBase)):
            raise ShapeError(
                f"lookup: the indices are {indices!r}; give a column vector, an IndexedBase, or a list"
            )
        if 1 not in indices.shape and len(indices.shape) != 1:
            raise ShapeError(
                f"lookup: the indices have shape {indices.shape}; give one row or column of integers"
            )
        return super().__new__(cls, table, indices)

    @property
    def count(self) -> Dim:
        """The number of indices."""
        shape = self.args[1].shape
        return shape[0] if len(shape) == 1 or shape[1] == 1 else shape[1]

    @property
    def shape(self) -> Shape:
        """(number of indices, columns of the table)."""
        return (self.count, self.args[0].shape[1])

    def _entry(self, i: sympy.Expr, j: sympy.Expr, **hints: bool) -> sympy.Expr:
        table, indices = self.args
        if isinstance(indices, sympy.IndexedBase):
            row = indices[i]
        else:
            row = indices[i, 0] if indices.shape[1] == 1 else indices[0, i]
        return MatrixElement(table, row, j)

    def _sympystr(self, printer: Printer) -> str:
        return f"lookup({printer._print(self.args[0])}, {printer._print(self.args[1])})"

    def _latex(self, printer: Printer) -> str:
        return rf"{printer.parenthesize(self.args[0], 1000)}\left[{printer._print(self.args[1])}\right]"


__getattr__ = earlier_names(
    __name__, Softmax="MatrixSoftmax", LogSoftmax="MatrixLogSoftmax", LogSumExp="MatrixLogSumExp"
)
