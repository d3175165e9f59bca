"""Derivatives of matrix expressions as they are printed in the literature.

Each entry of ``IDENTITIES`` claims a derivative: a gradient in the shape of ``wrt``, a Jacobian
(rows the elements of the expression, columns those of ``wrt``), or a Hessian. The numbers are those
of K. B. Petersen and M. S. Pedersen, The Matrix Cookbook, version of November 15, 2012. Nothing here
is computed by symad. Symmetric matrices are written S + Sᵀ; single-entry matrices as eᵢ eⱼᵀ.
Sizes are numbers or symbols. ``MISPRINTS`` holds claims that are printed and false.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import sympy
from sympy import (
    Abs,
    Determinant,
    HadamardProduct,
    Identity,
    MatrixSymbol,
    OneMatrix,
    Symbol,
    Trace,
    log,
    sqrt,
)
from sympy.matrices.expressions.kronecker import KroneckerProduct
from sympy.matrices.expressions.matexpr import MatrixElement


class MatrixIdentity(NamedTuple):
    """``d expression / d wrt = claimed``."""

    name: str
    expression: Any
    wrt: Any
    claimed: Any
    equation: str
    kind: str = "gradient"
    rational: bool = True  # rational matrices have a rational derivative
    any_size: bool = True  # decided for all sizes, not at a few
    wrong: tuple[Any, ...] = ()  # false claims, printed or given by programs
    book: str = "The Matrix Cookbook (2012), equation"

    @property
    def source(self) -> str:
        return f"{self.book} {self.equation}"


def unit(k: int, size: Any) -> Any:
    """The k-th unit vector; for symbolic sizes any vector, as the identities hold for all vectors."""
    if not isinstance(size, int):
        return MatrixSymbol(f"e{k}", size, 1)
    return sympy.ImmutableDenseMatrix(size, 1, [int(k == i) for i in range(size)])


def number(product: Any) -> Any:
    """The element of a 1×1 matrix."""
    return MatrixElement(product, 0, 0)


def cookbook(N: Any, M: Any) -> tuple[list[MatrixIdentity], list[MatrixIdentity]]:
    """Identities and misprints; square matrices are N×N, the rectangular Z is N×M."""
    A, B, C, D, S, R, X = (MatrixSymbol(name, N, N) for name in ["A", "B", "C", "D", "S", "R", "X"])
    Z, P = MatrixSymbol("Z", N, M), MatrixSymbol("P", M, M)
    a, b, c, d, s, x = (MatrixSymbol(name, N, 1) for name in ["a", "b", "c", "d", "s", "x"])
    t = Symbol("t", real=True)
    I = Identity(N)  # noqa: E741
    W = S + S.T  # symmetric
    V = R + R.T  # symmetric

    e0, e1, e2 = (unit(k, N) for k in range(3))
    Y, Q = A + t * B, C + t * D
    AXB = A * X * B
    ones = OneMatrix(N, 1)
    total = number(ones.T * X * ones)
    xAAx, xBBx = number(x.T * A.T * A * x), number(x.T * B.T * B * x)
    distance = sqrt(number((x - a).T * (x - a)))
    ZWZ = Z.T * W * Z

    found = [
        # 2 Derivatives: rules
        MatrixIdentity("a constant", A, t, sympy.ZeroMatrix(N, N), "33", kind="jacobian"),
        MatrixIdentity("a multiple", 3 * Y, t, 3 * B, "34", kind="jacobian"),
        MatrixIdentity("a sum", Y + Q, t, B + D, "35", kind="jacobian"),
        MatrixIdentity("trace along a line", Trace(Y), t, Trace(B), "36"),
        MatrixIdentity("a product", Y * Q, t, B * Q + Y * D, "37", kind="jacobian"),
        MatrixIdentity(
            "a Hadamard product",
            HadamardProduct(Y, Q),
            t,
            HadamardProduct(B, Q) + HadamardProduct(Y, D),
            "38",
            kind="jacobian",
        ),
        MatrixIdentity(
            "a Kronecker product",
            KroneckerProduct(Y, Q),
            t,
            KroneckerProduct(B, Q) + KroneckerProduct(Y, D),
            "39",
            kind="jacobian",
            any_size=False,
        ),
        MatrixIdentity("an inverse", Y.I, t, -Y.I * B * Y.I, "40", kind="jacobian"),
        MatrixIdentity("a determinant", Determinant(Y), t, Trace(Determinant(Y) * Y.I * B), "41"),
        MatrixIdentity("log det along a line", log(Determinant(Y)), t, Trace(Y.I * B), "43"),
        # 2.1 Derivatives of a determinant
        MatrixIdentity("det along a line", Determinant(Y), t, Determinant(Y) * Trace(Y.I * B), "46"),
        MatrixIdentity("a transpose", Y.T, t, B.T, "44", kind="jacobian"),
        MatrixIdentity(
            "det along a line, twice",
            Determinant(Y),
            t,
            Determinant(Y) * (Trace(Y.I * B) ** 2 - Trace(Y.I * B * Y.I * B)),
            "48",
            kind="hessian",
        ),
        MatrixIdentity("det X", Determinant(X), X, Determinant(X) * X.I.T, "49"),
        MatrixIdentity("det AXB", Determinant(AXB), X, Determinant(AXB) * X.I.T, "51"),
        MatrixIdentity(
            "det X'AX, X square",
            Determinant(X.T * A * X),
            X,
            2 * Determinant(X.T * A * X) * X.I.T,
            "52",
        ),
        MatrixIdentity(
            "det Z'WZ, W symmetric", Determinant(ZWZ), Z, 2 * Determinant(ZWZ) * W * Z * ZWZ.I, "53"
        ),
        MatrixIdentity(
            "det Z'AZ",
            Determinant(Z.T * A * Z),
            Z,
            Determinant(Z.T * A * Z) * (A * Z * (Z.T * A * Z).I + A.T * Z * (Z.T * A.T * Z).I),
            "54",
        ),
        MatrixIdentity(
            "log det Z'Z", log(Determinant(Z.T * Z)), Z, 2 * Z * (Z.T * Z).I, "55"
        ),  # the transposed pseudo-inverse of Z is Z (Z'Z)^-1
        MatrixIdentity("log |det X|", log(Abs(Determinant(X))), X, X.I.T, "57"),
        MatrixIdentity("log det X", log(Determinant(X)), X, X.I.T, "57"),
        MatrixIdentity("det X^3", Determinant(X**3), X, 3 * Determinant(X**3) * X.I.T, "58"),
        # 2.2 Derivatives of an inverse
        MatrixIdentity("inverse along a line", Y.I, t, -Y.I * B * Y.I, "59", kind="jacobian"),
        MatrixIdentity("element of the inverse", e0.T * X.I * e2, X, -X.I.T * e0 * e2.T * X.I.T, "60"),
        MatrixIdentity("a'X^-1 b", a.T * X.I * b, X, -X.I.T * a * b.T * X.I.T, "61"),
        MatrixIdentity("det X^-1", Determinant(X.I), X, -Determinant(X.I) * X.I.T, "62"),
        MatrixIdentity("tr A X^-1 B", Trace(A * X.I * B), X, -(X.I * B * A * X.I).T, "63"),
        MatrixIdentity("tr (X + A)^-1", Trace((X + A).I), X, -((X + A).I * (X + A).I).T, "64"),
        # 2.4.1 First order
        MatrixIdentity("x'a", x.T * a, x, a, "69"),
        MatrixIdentity("a'x", a.T * x, x, a, "69"),
        MatrixIdentity("a'Xb", a.T * X * b, X, a * b.T, "70"),
        MatrixIdentity("a'X'b", a.T * X.T * b, X, b * a.T, "71"),
        MatrixIdentity("a'Xa", a.T * X * a, X, a * a.T, "72"),
        MatrixIdentity("a'X'a", a.T * X.T * a, X, a * a.T, "72"),
        MatrixIdentity("an element of X", e1.T * X * e2, X, e1 * e2.T, "73"),
        MatrixIdentity("an element of XA", e1.T * X * A * e2, X, e1 * e2.T * A.T, "74"),
        MatrixIdentity("an element of X'A", e1.T * X.T * A * e2, X, A * e2 * e1.T, "75"),
        # 2.4.2 Second order
        MatrixIdentity("(sum of X)^2", total**2, X, 2 * total * OneMatrix(N, N), "76"),
        MatrixIdentity("b'X'Xc", b.T * X.T * X * c, X, X * (b * c.T + c * b.T), "77"),
        MatrixIdentity(
            "(Bx + b)'C(Dx + d)",
            (B * x + b).T * C * (D * x + d),
            x,
            B.T * C * (D * x + d) + D.T * C.T * (B * x + b),
            "78",
        ),
        MatrixIdentity(
            "an element of X'BX",
            e0.T * X.T * B * X * e2,
            X,
            B.T * X * e0 * e2.T + B * X * e2 * e0.T,
            "79",
        ),
        MatrixIdentity(
            "X'BX along an element of X",
            (A + t * e0 * e2.T).T * B * (A + t * e0 * e2.T),
            t,
            (A + t * e0 * e2.T).T * B * e0 * e2.T + e2 * e0.T * B * (A + t * e0 * e2.T),
            "80",
            kind="jacobian",
        ),
        MatrixIdentity("x'Bx", x.T * B * x, x, (B + B.T) * x, "81"),
        MatrixIdentity("b'X'DXc", b.T * X.T * D * X * c, X, D.T * X * b * c.T + D * X * c * b.T, "82"),
        MatrixIdentity(
            "(Xb + c)'D(Xb + c)",
            (X * b + c).T * D * (X * b + c),
            X,
            (D + D.T) * (X * b + c) * b.T,
            "83",
        ),
        MatrixIdentity(
            "(x - As)'W(x - As) in s",
            (x - A * s).T * W * (x - A * s),
            s,
            -2 * A.T * W * (x - A * s),
            "84",
        ),
        MatrixIdentity("(x - s)'W(x - s) in x", (x - s).T * W * (x - s), x, 2 * W * (x - s), "85"),
        MatrixIdentity("(x - s)'W(x - s) in s", (x - s).T * W * (x - s), s, -2 * W * (x - s), "86"),
        MatrixIdentity(
            "(x - As)'W(x - As) in x", (x - A * s).T * W * (x - A * s), x, 2 * W * (x - A * s), "87"
        ),
        MatrixIdentity(
            "(x - As)'W(x - As) in A",
            (x - A * s).T * W * (x - A * s),
            A,
            -2 * W * (x - A * s) * s.T,
            "88",
        ),
        # 2.4.3 Higher order and non-linear
        MatrixIdentity(
            "an element of X^3",
            e0.T * X**3 * e2,
            X,
            e0 * e2.T * (X**2).T + X.T * e0 * e2.T * X.T + (X**2).T * e0 * e2.T,
            "90",
        ),
        MatrixIdentity(
            "a'X^3 b",
            a.T * X**3 * b,
            X,
            a * b.T * (X**2).T + X.T * a * b.T * X.T + (X**2).T * a * b.T,
            "91",
        ),
        MatrixIdentity(
            "a'(X^2)'X^2 b",
            a.T * (X**2).T * X**2 * b,
            X,
            X**2 * b * a.T * X.T + X.T * X**2 * b * a.T + X**2 * a * b.T * X.T + X.T * X**2 * a * b.T,
            "92, corrected: see MISPRINTS",
        ),
        MatrixIdentity(
            "a ratio of quadratic forms",
            xAAx / xBBx,
            x,
            2 * A.T * A * x / xBBx - 2 * xAAx / xBBx**2 * B.T * B * x,
            "95",
        ),
        # 2.4.4 Gradient and Hessian
        MatrixIdentity("x'Ax + b'x", x.T * A * x + b.T * x, x, (A + A.T) * x + b, "97"),
        MatrixIdentity("x'Ax + b'x, twice", x.T * A * x + b.T * x, x, A + A.T, "98", kind="hessian"),
        # 2.5.1 Derivatives of traces, first order
        MatrixIdentity("tr X", Trace(X), X, I, "99"),
        MatrixIdentity("tr XA", Trace(X * A), X, A.T, "100"),
        MatrixIdentity("tr AXB", Trace(AXB), X, A.T * B.T, "101"),
        MatrixIdentity("tr AX'B", Trace(A * X.T * B), X, B * A, "102"),
        MatrixIdentity("tr X'A", Trace(X.T * A), X, A, "103"),
        MatrixIdentity("tr AX'", Trace(A * X.T), X, A, "104"),
        MatrixIdentity(
            "tr of a Kronecker product", Trace(KroneckerProduct(A, X)), X, Trace(A) * I, "105", any_size=False
        ),
        # 2.5.2 Second order
        MatrixIdentity("tr X^2", Trace(X**2), X, 2 * X.T, "106"),
        MatrixIdentity("tr X^2 B", Trace(X**2 * B), X, (X * B + B * X).T, "107"),
        MatrixIdentity("tr X'BX", Trace(X.T * B * X), X, B * X + B.T * X, "108"),
        MatrixIdentity("tr BXX'", Trace(B * X * X.T), X, B * X + B.T * X, "109"),
        MatrixIdentity("tr XX'B", Trace(X * X.T * B), X, B * X + B.T * X, "110"),
        MatrixIdentity("tr XBX'", Trace(X * B * X.T), X, X * B.T + X * B, "111"),
        MatrixIdentity("tr BX'X", Trace(B * X.T * X), X, X * B.T + X * B, "112"),
        MatrixIdentity("tr X'XB", Trace(X.T * X * B), X, X * B.T + X * B, "113"),
        MatrixIdentity("tr AXBX", Trace(A * X * B * X), X, A.T * X.T * B.T + B.T * X.T * A.T, "114"),
        MatrixIdentity("tr X'X", Trace(X.T * X), X, 2 * X, "115"),
        MatrixIdentity("tr XX'", Trace(X * X.T), X, 2 * X, "115"),
        MatrixIdentity(
            "tr B'X'CXB", Trace(B.T * X.T * C * X * B), X, C.T * X * B * B.T + C * X * B * B.T, "116"
        ),
        MatrixIdentity("tr X'BXC", Trace(X.T * B * X * C), X, B * X * C + B.T * X * C.T, "117"),
        MatrixIdentity("tr AXBX'C", Trace(AXB * X.T * C), X, A.T * C.T * X * B.T + C * A * X * B, "118"),
        MatrixIdentity(
            "tr (AXB + C)(AXB + C)'",
            Trace((AXB + C) * (AXB + C).T),
            X,
            2 * A.T * (AXB + C) * B.T,
            "119",
        ),
        MatrixIdentity(
            "tr of a Kronecker square",
            Trace(KroneckerProduct(X, X)),
            X,
            2 * Trace(X) * I,
            "120",
            any_size=False,
        ),
        MatrixIdentity("(tr X)^2", Trace(X) * Trace(X), X, 2 * Trace(X) * I, "120"),
        # 2.5.3 Higher order
        MatrixIdentity("tr X^4", Trace(X**4), X, 4 * (X**3).T, "121"),
        MatrixIdentity("tr AX^3", Trace(A * X**3), X, (A * X**2).T + (X * A * X).T + (X**2 * A).T, "122"),
        MatrixIdentity(
            "tr B'X'CXX'CXB",
            Trace(B.T * X.T * C * X * X.T * C * X * B),
            X,
            C * X * X.T * C * X * B * B.T
            + C.T * X * B * B.T * X.T * C.T * X
            + C * X * B * B.T * X.T * C * X
            + C.T * X * X.T * C.T * X * B * B.T,
            "123",
        ),
        # 2.5.4 Other
        MatrixIdentity("tr A X^-1 B, again", Trace(A * X.I * B), X, -X.I.T * A.T * B.T * X.I.T, "124"),
        MatrixIdentity(
            "tr (Z'WZ)^-1 P",
            Trace(ZWZ.I * P),
            Z,
            -(W * Z * ZWZ.I) * (P + P.T) * ZWZ.I,
            "125",
        ),
        MatrixIdentity(
            "tr (Z'WZ)^-1 Z'VZ",
            Trace(ZWZ.I * (Z.T * V * Z)),
            Z,
            -2 * W * Z * ZWZ.I * Z.T * V * Z * ZWZ.I + 2 * V * Z * ZWZ.I,
            "126",
        ),
        MatrixIdentity(
            "tr (P + P' + Z'WZ)^-1 Z'VZ",
            Trace((P + P.T + ZWZ).I * (Z.T * V * Z)),
            Z,
            -2 * W * Z * (P + P.T + ZWZ).I * Z.T * V * Z * (P + P.T + ZWZ).I + 2 * V * Z * (P + P.T + ZWZ).I,
            "127, its A symmetric",
        ),
        # 2.6 and 2.7 Norms
        MatrixIdentity("|x - a|", distance, x, (x - a) / distance, "129", rational=False),
        MatrixIdentity(
            "(x - a)/|x - a|",
            (x - a) / distance,
            x,
            I / distance - (x - a) * (x - a).T / distance**3,
            "130",
            kind="jacobian",
            rational=False,
        ),
        MatrixIdentity("x'x", x.T * x, x, 2 * x, "131"),
        MatrixIdentity("Frobenius norm squared", Trace(X * X.T), X, 2 * X, "132"),
    ]

    misprints = [
        # The first term in the sum over r is printed transposed. It comes from (dX^n a)' X^n b, so
        # that it must be (X^r)' X^n b a' (X^(n-1-r))'.
        MatrixIdentity(
            "a'(X^2)'X^2 b, as printed",
            a.T * (X**2).T * X**2 * b,
            X,
            X * a * b.T * (X**2).T + X**2 * a * b.T * X.T + a * b.T * (X**2).T * X + X.T * X**2 * a * b.T,
            "92",
        ),
    ]
    return found, misprints


IDENTITIES, MISPRINTS = cookbook(3, 2)
