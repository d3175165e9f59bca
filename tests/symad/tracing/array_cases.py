"""Expressions of arrays with indices, and what they mean."""

import numpy as np
import sympy
from sympy import ImmutableDenseNDimArray, Lambda, MatrixSymbol, cos, sin
from sympy.tensor.array.expressions import (
    ArrayAdd,
    ArrayContraction,
    ArrayDiagonal,
    ArrayElementwiseApplyFunc,
    ArraySymbol,
    ArrayTensorProduct,
    PermuteDims,
    Reshape,
)
from sympy.tensor.array.expressions.array_expressions import OneArray, ZeroArray

k, m, n = sympy.symbols("k m n", integer=True, positive=True)
t, u = sympy.symbols("t u", real=True)
A, B = MatrixSymbol("A", n, m), MatrixSymbol("B", m, k)
X, x = MatrixSymbol("X", n, n), MatrixSymbol("x", n, 1)
T, U = ArraySymbol("T", (n, m, k)), ArraySymbol("U", (n, m, k))
W = ArraySymbol("W", (n, n, n, m))


def by_einsum(spec, *names):
    return lambda **given: np.einsum(spec, *[given[name] for name in names])


# Each case: an expression, and the function of the named values that NumPy says it is.
CASES = {
    "tensor product": (ArrayTensorProduct(A, T), by_einsum("ij,klm->ijklm", "A", "T")),
    "matrix product": (
        ArrayContraction(ArrayTensorProduct(A, B), (1, 2)),
        by_einsum("ij,jk->ik", "A", "B"),
    ),
    "sum over an axis": (ArrayContraction(T, (1,)), by_einsum("ijk->ik", "T")),
    "sum over everything": (ArrayContraction(T, (0,), (1,), (2,)), by_einsum("ijk->", "T")),
    "trace of two axes": (ArrayContraction(W, (0, 2)), by_einsum("ijil->jl", "W")),
    "three axes at once": (ArrayContraction(W, (0, 1, 2)), by_einsum("iiil->l", "W")),
    "diagonal": (ArrayDiagonal(W, (0, 2)), by_einsum("ijil->jli", "W")),
    "two diagonals": (
        ArrayDiagonal(ArrayTensorProduct(A, X, A), (0, 2), (1, 5)),
        by_einsum("ij,ik,lj->klij", "A", "X", "A"),
    ),
    "diagonal of a contraction": (
        ArrayDiagonal(ArrayContraction(ArrayTensorProduct(X, T, A), (1, 2), (3, 6)), (0, 2)),
        by_einsum("ij,jkl,ik->li", "X", "T", "A"),
    ),
    "contraction of a diagonal": (
        ArrayContraction(ArrayDiagonal(ArrayTensorProduct(X, X, X), (1, 2)), (0, 3)),
        by_einsum("ij,jk,li->klj", "X", "X", "X"),
    ),
    "permutation": (PermuteDims(T, [2, 0, 1]), by_einsum("ijk->kij", "T")),
    "permuted contraction": (
        PermuteDims(ArrayContraction(ArrayTensorProduct(T, X), (0, 4)), [1, 2, 0]),
        by_einsum("ijk,li->klj", "T", "X"),
    ),
    "contraction of a permutation": (
        ArrayContraction(PermuteDims(ArrayTensorProduct(T, X), [3, 0, 1, 2, 4]), (0, 1)),
        by_einsum("ijk,il->jkl", "T", "X"),
    ),
    "chain of four": (
        ArrayContraction(ArrayTensorProduct(X, A, B, B, A), (1, 2), (3, 4), (5, 7), (6, 9)),
        by_einsum("ij,jk,kl,ml,nm->in", "X", "A", "B", "B", "A"),
    ),
    "a number in front": (ArrayTensorProduct(t, T), lambda T, t: t * T),
    "a diagonal SymPy converts wrongly": (
        ArrayDiagonal(
            ArrayTensorProduct(sympy.Identity(n), MatrixSymbol("x", n, 1), X, MatrixSymbol("Y", n, n)),
            (1, 2),
            (5, 6),
        ),
        by_einsum("ij,jk,lm,mo->iklojm", "I", "x", "X", "Y"),
    ),
    "sum": (ArrayAdd(T, U), lambda T, U: T + U),
    "sum and difference of symbols": (T - 2 * U, lambda T, U: T - 2 * U),
    "zeros and ones": (ArrayAdd(T, ZeroArray(n, m, k), OneArray(n, m, k)), lambda T: T + 1),
    "reshape": (Reshape(T, (n * k, m)), lambda T: T.reshape(12, 2)),
    "a function head": (ArrayElementwiseApplyFunc(sin, T), lambda T: np.sin(T)),
    "a Lambda": (
        ArrayElementwiseApplyFunc(Lambda(u, cos(u) * t + u**2), T),
        lambda T, t: np.cos(T) * t + T**2,
    ),
    "an element": (T[0, 1, 2], lambda T: T[0, 1, 2]),
    "the last element": (T[n - 1, m - 1, k - 1] ** 2, lambda T: T[-1, -1, -1] ** 2),
    "a function of elements": (
        sin(T[0, 0, 0]) * T[1, 1, 1],
        lambda T: np.sin(T[0, 0, 0]) * T[1, 1, 1],
    ),
    "an explicit array": (
        ArrayContraction(
            ArrayTensorProduct(ImmutableDenseNDimArray([1, t, 3]), MatrixSymbol("v", 3, 2)), (0, 1)
        ),
        lambda t, v: np.array([1, t, 3]) @ v,
    ),
}
