"""Derivatives of matrix expressions by definition: elements changed one by one, at 60 digits.

SymPy evaluates the expression on explicit matrices of 60-digit numbers; each derivative is a
central difference, whose error is far below double precision. Neither matrix calculus nor symad is used.
"""

from __future__ import annotations

import numpy as np
import sympy
from sympy.codegen.matrix_nodes import MatrixSolve
from sympy.matrices.expressions.diagonal import DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.factorizations import LofCholesky, UofCholesky

DIGITS = 60
STEP = sympy.Float("1e-15", DIGITS)


def _diagonal(a):
    return sympy.ImmutableDenseMatrix([a[k, k] for k in range(min(a.shape))])


def _cholesky(a):
    return sympy.ImmutableDenseMatrix(sympy.Matrix(a.doit()).cholesky(hermitian=False))


MEANINGS = {
    DiagonalOf: _diagonal,
    DiagonalMatrix: lambda a: sympy.ImmutableDenseMatrix(
        *a.shape, lambda i, j: a[i, j] if i == j else 0
    ),
    LofCholesky: _cholesky,
    UofCholesky: lambda a: _cholesky(a).T,
    MatrixSolve: lambda matrix, vector: matrix.inv() * vector,
}
"""Functions that evaluate the expressions for which SymPy has no evaluation."""


def matrix_point(symbols, size=3):
    """A value for each symbol: distinct rational numbers; square matrices far from singular."""
    return {symbol: _value(symbol, size) for symbol in symbols}


def _value(symbol, size):
    seed = sum(map(ord, str(symbol)))
    if isinstance(symbol, sympy.Symbol):
        return sympy.Rational(seed % 7 + 2, 5)
    rows, columns = (
        int(sympy.S(dim).subs(dict.fromkeys(sympy.S(dim).free_symbols, size)))
        for dim in symbol.shape
    )
    return sympy.ImmutableDenseMatrix(
        rows,
        columns,
        lambda i, j: (
            sympy.Rational((7 * i + 11 * j + 13 * seed + 5 * i * j) % 17 - 8, 20)
            + (2 if rows == columns > 1 and i == j else 0)
        ),
    )


def floats_of(value):
    """A value of `matrix_point` as a float or a float array."""
    return (
        np.array(value.tolist(), dtype=float)
        if isinstance(value, sympy.MatrixBase)
        else float(value)
    )


def evaluate(expression, point):
    """The elements of an expression in row-major order, 60 digits."""
    exact = {s: v.evalf(DIGITS) for s, v in point.items()}
    value = expression.subs(exact)
    for node, meaning in MEANINGS.items():
        value = value.replace(node, meaning)
    value = value.doit()
    if getattr(value, "is_Matrix", False) and not isinstance(value, sympy.MatrixBase):
        value = value.as_explicit()
    elements = value.flat() if isinstance(value, sympy.MatrixBase) else [value]
    return [sympy.S(v).doit().evalf(DIGITS) for v in elements]


def _moved(point, symbol, k, by):
    old = point[symbol]
    if not isinstance(old, sympy.MatrixBase):
        return {**point, symbol: old + by}
    entries = old.flat()
    entries[k] += by
    return {**point, symbol: sympy.ImmutableDenseMatrix(*old.shape, entries)}


def _count(value):
    return len(value.flat()) if isinstance(value, sympy.MatrixBase) else 1


def jacobian(expression, wrt, point):
    """The Jacobian: rows are elements of the expression, columns elements of ``wrt``."""
    columns = []
    for k in range(_count(point[wrt])):
        up = evaluate(expression, _moved(point, wrt, k, STEP))
        down = evaluate(expression, _moved(point, wrt, k, -STEP))
        columns.append([float((u - v) / (2 * STEP)) for u, v in zip(up, down, strict=True)])
    return np.array(columns).T


def hessian(expression, wrt, point):
    """Second central differences of a scalar expression."""
    count = _count(point[wrt])
    result = np.empty((count, count))
    for i in range(count):
        for j in range(i + 1):
            total = 0
            for sign_i in (1, -1):
                for sign_j in (1, -1):
                    there = _moved(_moved(point, wrt, i, sign_i * STEP), wrt, j, sign_j * STEP)
                    total += sign_i * sign_j * evaluate(expression, there)[0]
            result[i, j] = result[j, i] = float(total / (4 * STEP**2))
    return result
