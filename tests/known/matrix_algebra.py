"""Identities between matrix expressions, without derivatives, that rewriting of matrix expressions uses.

The numbers of the identities are those of Petersen and Pedersen, "The Matrix Cookbook", version of
November 15, 2012.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sympy import Determinant, Identity, MatrixSymbol, Symbol, Trace
from sympy.matrices.expressions.kronecker import KroneckerProduct

from tests.known.matrix_identities import number


class Equality(NamedTuple):
    """``left = right``; with ``any_size``, meant for all sizes, and proved where the checker has rules."""

    name: str
    left: Any
    right: Any
    equation: str
    any_size: bool = True
    wrong: tuple[Any, ...] = ()


def equalities(N: Any, M: Any) -> list[Equality]:
    """All equalities; N and M are numbers or symbols."""
    A, B, C, X = (MatrixSymbol(name, N, N) for name in "ABCX")
    Z, U, V = MatrixSymbol("Z", N, M), MatrixSymbol("U", N, M), MatrixSymbol("V", M, N)
    P, R = MatrixSymbol("P", M, M), MatrixSymbol("R", M, M)
    b, c = MatrixSymbol("b", N, 1), MatrixSymbol("c", N, 1)
    I, J, t = Identity(N), Identity(M), Symbol("t", real=True)  # noqa: E741
    det, K = Determinant, KroneckerProduct
    return [
        Equality("inverse of a product", (A * B).I, B.I * A.I, "1", wrong=(A.I * B.I,)),
        Equality("inverse of three", (A * B * C).I, C.I * B.I * A.I, "2", wrong=(A.I * B.I * C.I,)),
        Equality("inverse of a transpose", A.T.I, A.I.T, "3", wrong=(A.I,)),
        Equality("transpose of a sum", (A + B).T, A.T + B.T, "4", wrong=(A.T + B,)),
        Equality("transpose of a product", (A * Z).T, Z.T * A.T, "5"),
        Equality("transpose of three", (A * B * C).T, C.T * B.T * A.T, "6", wrong=(A.T * B.T * C.T,)),
        Equality("trace of a transpose", Trace(A), Trace(A.T), "13"),
        Equality("trace of a product", Trace(Z * V), Trace(V * Z), "14"),
        Equality("trace of a sum", Trace(A + B), Trace(A) + Trace(B), "15"),
        Equality("cyclic trace", Trace(A * B * C), Trace(B * C * A), "16", wrong=(Trace(A * C * B),)),
        Equality("norm as a trace", number(b.T * b), Trace(b * b.T), "17"),
        Equality("det of a multiple", det(3 * A), 3**N * det(A), "19", any_size=False, wrong=(3 * det(A),)),
        Equality("det of a transpose", det(A.T), det(A), "20"),
        Equality("det of a product", det(A * B), det(A) * det(B), "21", wrong=(det(A) + det(B),)),
        Equality("det of an inverse", det(A.I), 1 / det(A), "22", wrong=(-1 / det(A),)),
        Equality("det of a power", det(A**3), det(A) ** 3, "23"),
        Equality("det of 1 + bc'", det(I + b * c.T), 1 + number(b.T * c), "24", any_size=False,
                 wrong=(1 - number(b.T * c),)),
        Equality("Woodbury", (A + Z * P * Z.T).I, A.I - A.I * Z * (P.I + Z.T * A.I * Z).I * Z.T * A.I, "156",
                 any_size=False, wrong=(A.I - A.I * Z * (P + Z.T * A.I * Z).I * Z.T * A.I,)),
        Equality("Woodbury, not symmetric", (A + U * P * V).I,
                 A.I - A.I * U * (P.I + V * A.I * U).I * V * A.I, "157", any_size=False,
                 wrong=(A.I + A.I * U * (P.I + V * A.I * U).I * V * A.I,)),
        Equality("push through", (A.I + V.T * R.I * V).I * V.T * R.I, A * V.T * (V * A * V.T + R).I, "158",
                 any_size=False, wrong=(A * V.T * (V * A * V.T + R.I).I,)),
        Equality("Kailath", (A + U * V).I, A.I - A.I * U * (J + V * A.I * U).I * V * A.I, "159",
                 any_size=False, wrong=(A.I - A.I * U * (J - V * A.I * U).I * V * A.I,)),
        Equality("Sherman and Morrison", (A + b * c.T).I,
                 A.I - A.I * b * c.T * A.I / (1 + number(c.T * A.I * b)), "160", any_size=False,
                 wrong=(A.I - A.I * b * c.T * A.I / (1 - number(c.T * A.I * b)),)),
        Equality("Searle: (1 + A^-1)^-1", (I + A.I).I, A * (A + I).I, "161", any_size=False,
                 wrong=(A * (A - I).I,)),
        Equality("Searle: (A + BB')^-1 B", (A + Z * Z.T).I * Z, A.I * Z * (J + Z.T * A.I * Z).I, "162",
                 any_size=False, wrong=(A.I * Z * (J - Z.T * A.I * Z).I,)),
        Equality("Searle: (A^-1 + B^-1)^-1", (A.I + B.I).I, A * (A + B).I * B, "163", any_size=False,
                 wrong=(A * (A - B).I * B,)),
        Equality("Searle: the same, turned", (A.I + B.I).I, B * (A + B).I * A, "163", any_size=False),
        Equality("Searle: A - A(A + B)^-1 A", A - A * (A + B).I * A, B - B * (A + B).I * B, "164",
                 any_size=False, wrong=(B + B * (A + B).I * B,)),
        Equality("Searle: A^-1 + B^-1", A.I + B.I, A.I * (A + B) * B.I, "165", wrong=(A.I * (A - B) * B.I,)),
        Equality("Searle: (1 + AB)^-1", (I + A * B).I, I - A * (I + B * A).I * B, "166", any_size=False,
                 wrong=(I + A * (I + B * A).I * B,)),
        Equality("Searle: (1 + AB)^-1 A", (I + A * B).I * A, A * (I + B * A).I, "167", any_size=False,
                 wrong=(A * (I + A * B).I,)),
        Equality("(A + t)(A - t)", (A + t * I) * (A - t * I), A * A - t**2 * I, "a difference of squares"),
        Equality("commutator of a product", A * (B * C) - (B * C) * A,
                 (A * B - B * A) * C + B * (A * C - C * A), "Leibniz rule of commutators",
                 wrong=((A * B - B * A) * C + (A * C - C * A) * B,)),
        Equality("Kronecker and a sum", K(P, A + B), K(P, A) + K(P, B), "506", any_size=False),
        Equality("Kronecker and transposes", K(A, P).T, K(A.T, P.T), "510",
                 wrong=(K(P.T, A.T),) if isinstance(N, int) else ()),
        Equality("Kronecker and products", K(A, P) * K(B, R), K(A * B, P * R), "511", any_size=False,
                 wrong=(K(B * A, P * R),)),
        Equality("Kronecker and inverses", K(X, P).I, K(X.I, P.I), "512"),
        Equality("Kronecker and traces", Trace(K(A, P)), Trace(A) * Trace(P), "515", any_size=False,
                 wrong=(Trace(A) + Trace(P),)),
    ]  # fmt: skip
