"""Matrix expressions whose derivative by SymPy was wrong or missing, with the right derivative.

The numbers are those of the reports and pull requests in sympy/sympy. ``wrong`` holds the wrong answer of
SymPy 1.14 or, where it has none, half of the right derivative. Expressions that no rule of SymPy covers have
no number. Some expressions are right in SymPy 1.14 and were wrong in an earlier version.
"""

from __future__ import annotations

from typing import Any

from sympy import (
    Determinant,
    HadamardProduct,
    Identity,
    Lambda,
    MatrixSymbol,
    OneMatrix,
    Symbol,
    Trace,
    ZeroMatrix,
    exp,
    log,
    sqrt,
)
from sympy.matrices.expressions.diagonal import DiagMatrix
from sympy.matrices.expressions.hadamard import HadamardPower

from tests.known.matrix_identities import MatrixIdentity, number

_v = Symbol("v", real=True)
EXP = Lambda(_v, exp(_v))


def _entry(*args: Any, **options: Any) -> MatrixIdentity:
    return MatrixIdentity(*args, **options, book="sympy/sympy")


def identities(N: Any, M: Any) -> list[MatrixIdentity]:
    """All identities; N and M are numbers or symbols."""
    return [*traces(N), *determinants(N), *vectors(N), *elementwise(N), *along_a_line(N)]


def traces(N: Any) -> list[MatrixIdentity]:
    """Sums and functions of traces."""
    A, X = MatrixSymbol("A", N, N), MatrixSymbol("X", N, N)
    I, O = Identity(N), ZeroMatrix(N, N)  # noqa: E741
    norm = sqrt(Trace(A.T * A))
    return [
        _entry("tr X + 1", Trace(X) + 1, X, I, "#26561", wrong=(O,)),
        _entry("|X|^2 - 3", Trace(X.T * X) - 3, X, 2 * X, "#25118", wrong=(O, X)),
        _entry("|X|^2/2 + tr AX", Trace(X.T * X) / 2 + Trace(A * X), X, X + A.T, "#26585", wrong=(O, X + A)),
        _entry("exp tr X", exp(Trace(X)), X, exp(Trace(X)) * I, "without a report", wrong=(O, I)),
        _entry("Frobenius norm", norm, A, A / norm, "#28615", rational=False, wrong=(A,)),
        _entry("tr X^-2", Trace(X**-2), X, -2 * (X.I**3).T, "without a report", wrong=(-2 * X.I**3,)),
        _entry("(tr X)^3", Trace(X) ** 3, X, 3 * Trace(X) ** 2 * I, "#23492", wrong=(3 * Trace(X) ** 2 * X,)),
        _entry("tr X^3", Trace(X**3), X, 3 * (X**2).T, "#28640",
               wrong=(3 * X**2, 3 * HadamardPower(X, 2))),
    ]  # fmt: skip


def determinants(N: Any) -> list[MatrixIdentity]:
    """Determinants, and functions of them."""
    X, A, t = MatrixSymbol("X", N, N), MatrixSymbol("A", N, N), Symbol("t", real=True)
    det, O = Determinant(X), ZeroMatrix(N, N)  # noqa: E741
    return [
        _entry("det X", det, X, det * X.I.T, "#15649", wrong=(det * X.I, O)),
        _entry("log det X", log(det), X, X.I.T, "#28618", wrong=(O, X.I)),
        _entry("(det X)^2", det**2, X, 2 * det**2 * X.I.T, "#28618", wrong=(O, 2 * det * X.I.T)),
        _entry("1/det X", 1 / det, X, -X.I.T / det, "#28618", wrong=(O, X.I.T / det)),
        _entry("t det X", t * det, X, t * det * X.I.T, "#28838", wrong=(O, det * X.I.T)),
        _entry("det X tr X", det * Trace(X), X, det * Identity(N) + Trace(X) * det * X.I.T, "#28838",
               wrong=(det * Identity(N), Trace(X) * det * X.I.T)),
        _entry("det(A + X)", Determinant(A + X), X, Determinant(A + X) * (A + X).I.T, "#29355",
               wrong=(Determinant(A) * A.I.T + Determinant(X) * X.I.T,)),
    ]  # fmt: skip


def vectors(N: Any) -> list[MatrixIdentity]:
    """Functions of forms in a vector, and elements."""
    A, X = MatrixSymbol("A", N, N), MatrixSymbol("X", N, N)
    x, a, b = MatrixSymbol("x", N, 1), MatrixSymbol("a", N, 1), MatrixSymbol("b", N, 1)
    form, square, ones = number(x.T * A * x), number(x.T * x), OneMatrix(N, 1)
    y = x.applyfunc(EXP)
    z = (A * x).applyfunc(EXP)
    return [
        _entry("exp x'Ax", exp(form), x, exp(form) * (A + A.T) * x, "#24725",
               wrong=(ZeroMatrix(N, 1), exp(form) * A * x)),
        _entry("|x|", sqrt(square), x, x / sqrt(square), "#28615", rational=False, wrong=(x,)),
        _entry("log 1'exp(x)", log(number(ones.T * y)), x, y / number(ones.T * y), "without a report",
               wrong=(ZeroMatrix(N, 1), y)),
        _entry("1'exp(Ax), twice", ones.T * z, x, A.T * DiagMatrix(z) * A, "#9840", kind="hessian",
               wrong=(DiagMatrix(z), A.T * A)),
        _entry("x'Ax, twice", x.T * A * x, x, A + A.T, "#9840", kind="hessian", wrong=(2 * A,)),
        _entry("a'(Ax o x)", a.T * HadamardProduct(A * x, x), x,
               A.T * HadamardProduct(a, x) + HadamardProduct(a, A * x), "without a report",
               wrong=(HadamardProduct(a, A * x),)),
        _entry("b'diag(x)a", b.T * DiagMatrix(x) * a, x, HadamardProduct(a, b), "without a report",
               wrong=(DiagMatrix(a) * b + a,)),
        _entry("diag(x)a", DiagMatrix(x) * a, x, DiagMatrix(a), "without a report", kind="jacobian",
               wrong=(2 * DiagMatrix(a),)),
        _entry("a'Xb, a bilinear form", a.T * X * b, X, a * b.T, "#17229", wrong=(b * a.T,)),
        _entry("tanh of a form", log(1 + form), x, (A + A.T) * x / (1 + form), "#24725",
               wrong=((A + A.T) * x,)),
    ]  # fmt: skip


def elementwise(N: Any) -> list[MatrixIdentity]:
    """Hadamard products and powers, and elements of matrices."""
    A, B, X = MatrixSymbol("A", N, N), MatrixSymbol("B", N, N), MatrixSymbol("X", N, N)
    ones = OneMatrix(N, 1)
    found = [
        _entry("B.(XoX)", Trace(B.T * HadamardProduct(X, X)), X, 2 * HadamardProduct(B, X), "#28640",
               wrong=(HadamardProduct(B, X),)),
        _entry("1'(AoX)1", ones.T * HadamardProduct(A, X) * ones, X, A, "#28640",
               wrong=(A.T, OneMatrix(N, N))),
        _entry("1'X^o3 1", ones.T * HadamardPower(X, 3) * ones, X, 3 * HadamardPower(X, 2), "#28640",
               wrong=(3 * X**2,)),
    ]  # fmt: skip
    if isinstance(N, int):  # elements need sizes that are numbers
        e0, e1 = Identity(N)[:, 0], Identity(N)[:, 1]
        found += [
            _entry("X[0, 0]", X[0, 0], X, e0 * e0.T, "#17229", wrong=(ZeroMatrix(N, N),)),
            _entry("(AX)[0, 1]", number(e0.T * A * X * e1), X, A.T * e0 * e1.T, "#24725",
                   wrong=(ZeroMatrix(N, N), e0 * e1.T * A)),
        ]  # fmt: skip
    return found


def along_a_line(N: Any) -> list[MatrixIdentity]:
    """Matrices that are functions of a number."""
    A, B, X = MatrixSymbol("A", N, N), MatrixSymbol("B", N, N), MatrixSymbol("X", N, N)
    t = Symbol("t", real=True)
    Y = A + t * B
    return [
        _entry("(tX)(tX)", (t * X) * (t * X), t, 2 * t * X * X, "#23364", kind="jacobian",
               wrong=(t * X * X,)),
        _entry("(A + tB)^-1", Y.I, t, -Y.I * B * Y.I, "#23364", kind="jacobian",
               wrong=(-B * Y.I * Y.I, Y.I * B * Y.I)),
        _entry("det(A + tB)", Determinant(Y), t, Determinant(Y) * Trace(Y.I * B), "#28623",
               wrong=(Determinant(Y) * Trace(B), Determinant(B))),
    ]  # fmt: skip
