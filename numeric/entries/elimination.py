"""Linear algebra on entries: Gaussian elimination with partial pivoting, without branches.

The row with the largest pivot is only known when the code runs. Each row below the pivot is therefore
compared with the pivot's row, and the two are swapped by selections if it is larger. This takes n²/2
comparisons, n³/3 selections and n³/3 multiplications (Golub and Van Loan, "Matrix Computations", section 3.4,
with another order of swaps).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from symad.core.graph import Node, Op
from symad.core.questions import Array, Values, evaluate
from symad.evaluation.node_numbers import NodeNumber, as_numbers
from symad.higher_order.adjugate import Adjugate, polynomial_adjugate
from symad.numeric.entries.rules import NAN, Evaluator, add_all, entries
from symad.ops.basic.arithmetic import div, mul, neg, sub
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import compare, equal, logic, select
from symad.ops.linalg.cholesky import Cholesky
from symad.ops.linalg.slogdet import DeterminantSign
from symad.ops.linalg.solve_det import Determinant, LogDeterminant, Solve

ZERO, ONE = constant(0), constant(1)
Rows = list[list[Node]]


def _magnitude(node: Node) -> Node:
    """|x|, computed at once if x is a constant."""
    value = constant_value(node)
    return apply(sympy.Abs, node) if value is None or isinstance(value, sympy.Basic) else constant(abs(value))


def eliminate(rows: Rows, n: int) -> Node:
    """Make the first n columns upper triangular, in place; return the sign of the row swaps, 1 or −1.

    A column whose pivot is 0 is not changed: its remaining entries are zeros.
    """
    sign = ONE
    for k in range(n):
        for i in range(k + 1, n):
            if constant_value(rows[i][k]) == 0:
                continue
            larger = compare("<", _magnitude(rows[k][k]), _magnitude(rows[i][k]))
            upper, lower = rows[k], rows[i]
            rows[k] = [select(larger, b, a) for a, b in zip(upper, lower, strict=True)]
            rows[i] = [select(larger, a, b) for a, b in zip(upper, lower, strict=True)]
            sign = select(larger, neg(sign), sign)
        pivot = rows[k]
        divisor = select(equal(pivot[k], ZERO), ONE, pivot[k])
        for i in range(k + 1, n):
            if constant_value(rows[i][k]) == 0:
                continue
            factor = div(rows[i][k], divisor)
            rest = zip(rows[i][k + 1 :], pivot[k + 1 :], strict=True)
            rows[i] = [*rows[i][:k], ZERO, *(sub(a, mul(factor, b)) for a, b in rest)]
    return sign


def over_stack(function: Callable[..., Any], shape: tuple[int, ...], *stacks: Any) -> Array:
    """A function of matrices as lists of rows, for each matrix of a stack; ``shape`` is the result's."""
    arrays = [np.asarray(stack, dtype=object) for stack in stacks]
    lead = arrays[0].shape[:-2]
    found = [
        function(*([[entry.node for entry in row] for row in array[index]] for array in arrays))
        for index in np.ndindex(lead)
    ]
    numbers = np.empty(len(found) if not shape[len(lead) :] else (len(found), *shape[len(lead) :]), object)
    for k, result in enumerate(found):
        numbers[k] = NodeNumber(result) if isinstance(result, Node) else _numbers(result)
    return numbers.reshape(shape)[()]


def _numbers(rows: Rows) -> Array:
    made = np.empty((len(rows), len(rows[0]) if rows else 0), dtype=object)
    for place in np.ndindex(made.shape):
        made[place] = NodeNumber(rows[place[0]][place[1]])
    return made


def solved(a: Rows, b: Rows) -> Rows:
    """X with A X = B; NaN if a pivot is 0, where LAPACK reports a singular matrix."""
    n = len(a)
    rows = [[*left, *right] for left, right in zip(a, b, strict=True)]
    eliminate(rows, n)
    x: Rows = [[] for _ in rows]
    for i in reversed(range(n)):
        for j, right in enumerate(rows[i][n:]):
            known = add_all(mul(rows[i][k], x[k][j]) for k in range(i + 1, n))
            x[i].append(div(sub(right, known), rows[i][i]))
    singular = logic("or", *(equal(rows[k][k], ZERO) for k in range(n)))
    return [[select(singular, NAN, entry) for entry in row] for row in x]


def definite(factor: Rows) -> Rows:
    """A Cholesky factor; NaN unless all its pivots are positive, as LAPACK asks."""
    valid = logic("and", *(compare("<", ZERO, factor[k][k]) for k in range(len(factor))))
    return [
        [select(valid, entry, NAN) if j <= i else entry for j, entry in enumerate(row)]
        for i, row in enumerate(factor)
    ]


def _pivots(a: Rows) -> tuple[Node, list[Node]]:
    rows = [list(row) for row in a]
    sign = eliminate(rows, len(rows))
    return sign, [rows[k][k] for k in range(len(rows))]


def determinant(a: Rows) -> Node:
    """The product of the pivots, times the sign of the swaps."""
    sign, pivots = _pivots(a)
    return mul(sign, *pivots)


def determinant_sign(a: Rows) -> Node:
    """The product of the signs of the pivots: the determinant itself may overflow."""
    sign, pivots = _pivots(a)
    return mul(sign, *(apply(sympy.sign, pivot) for pivot in pivots))


def log_determinant(a: Rows) -> Node:
    """Σ log|pivot|; NaN if the determinant is negative."""
    _, pivots = _pivots(a)
    total = add_all(apply(sympy.log, _magnitude(pivot)) for pivot in pivots)
    return select(compare("<", determinant_sign(a), ZERO), NAN, total)


ON_ROWS: dict[type[Op], Callable[..., Any]] = {
    Solve: solved,
    Determinant: determinant,
    LogDeterminant: log_determinant,
    DeterminantSign: determinant_sign,
}
"""The functions of matrices as lists of rows."""


@entries.dispatch
def matrix_entries(
    op: Solve | Determinant | LogDeterminant | DeterminantSign, y: Node, values: Values, inside: Evaluator
) -> Array:
    return over_stack(ON_ROWS[type(op)], y.shape, *values)


@entries.dispatch
def cholesky_entries(op: Cholesky, y: Node, values: Values, inside: Evaluator) -> Array:
    return over_stack(definite, y.shape, as_numbers(evaluate(op, values)))


@entries.dispatch
def adjugate_entries(op: Adjugate, y: Node, values: Values, inside: Evaluator) -> Array:
    """The adjugate by a polynomial without divisions, so that it exists for singular matrices too."""
    return inside.values([polynomial_adjugate(y.args[0])], {y.args[0]: values[0]})[0]
