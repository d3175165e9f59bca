"""Matrix expressions of every kind, and their arguments."""

import sympy
from sympy import (
    Determinant,
    HadamardPower,
    HadamardProduct,
    Identity,
    ImmutableDenseMatrix,
    Lambda,
    MatrixSymbol,
    OneMatrix,
    Symbol,
    Trace,
    ZeroMatrix,
    exp,
    log,
    sin,
    sqrt,
    tanh,
)
from sympy.codegen.matrix_nodes import MatrixSolve
from sympy.combinatorics import Permutation
from sympy.matrices.expressions import (
    BlockDiagMatrix,
    BlockMatrix,
    DiagMatrix,
    DiagonalMatrix,
    DiagonalOf,
    DotProduct,
    FunctionMatrix,
    PermutationMatrix,
)
from sympy.matrices.expressions.adjoint import Adjoint
from sympy.matrices.expressions.factorizations import LofCholesky, UofCholesky
from sympy.matrices.expressions.kronecker import KroneckerProduct
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.matrices.expressions.permutation import MatrixPermute

from tests.symad.tracing.matrix_reference import floats_of, matrix_point

n, m = sympy.symbols("n m", integer=True, positive=True)
t = Symbol("t", real=True)
u = Symbol("u", real=True)


class Symbols:
    """The symbols of all cases, of one size."""

    def __init__(self, size):
        self.size = size
        self.X, self.A, self.B = (MatrixSymbol(name, size, size) for name in ("X", "A", "B"))
        self.x, self.a, self.b = (MatrixSymbol(name, size, 1) for name in ("x", "a", "b"))
        self.one = OneMatrix(size, 1)
        self.I = Identity(size)


def number(product):
    return MatrixElement(product, 0, 0)


# Each case: a function of the symbols giving (expression, wrt).
SCALARS = {
    "tr X + 1": lambda s: (Trace(s.X) + 1, s.X),
    "tr X'X - 3": lambda s: (Trace(s.X.T * s.X) - 3, s.X),
    "sum of two traces": lambda s: (Trace(s.X.T * s.X) / 2 + Trace(s.A * s.X), s.X),
    "exp tr X": lambda s: (exp(Trace(s.X)), s.X),
    "exp of a quadratic form": lambda s: (exp(number(s.x.T * s.A * s.x) / 9), s.x),
    "norm": lambda s: (sqrt(number(s.x.T * s.x)), s.x),
    "Frobenius norm": lambda s: (sqrt(Trace(s.A.T * s.A)), s.A),
    "det": lambda s: (Determinant(s.X), s.X),
    "log det": lambda s: (log(Determinant(s.X)), s.X),
    "det squared": lambda s: (Determinant(s.X) ** 2, s.X),
    "1/det": lambda s: (1 / Determinant(s.X), s.X),
    "5 det": lambda s: (5 * Determinant(s.X), s.X),
    "det times trace": lambda s: (Determinant(s.X) * Trace(s.X), s.X),
    "tr X^-2": lambda s: (Trace(s.X**-2), s.X),
    "tr X^3": lambda s: (Trace(s.X**3), s.X),
    "an element of X": lambda s: (s.X[0, 0], s.X),
    "an element of AX": lambda s: (MatrixElement(s.A * s.X, 0, 1), s.X),
    "det along a line": lambda s: (Determinant(s.A + t * s.B), t),
    "a'(Ax∘x)": lambda s: (s.a.T * HadamardProduct(s.A * s.x, s.x), s.x),
    "log sum exp": lambda s: (log(number(s.one.T * s.x.applyfunc(exp))), s.x),
    "sum exp Ax": lambda s: (s.one.T * (s.A * s.x).applyfunc(exp), s.x),
    "x'Ax": lambda s: (s.x.T * s.A * s.x, s.x),
    "least squares": lambda s: ((s.A * s.x - s.b).T * (s.A * s.x - s.b), s.x),
    "tr A X^-1 B": lambda s: (Trace(s.A * s.X.I * s.B), s.X),
    "a'tanh(Ax) in x": lambda s: (s.a.T * (s.A * s.x).applyfunc(tanh), s.x),
    "a'tanh(Ax) in A": lambda s: (s.a.T * (s.A * s.x).applyfunc(tanh), s.A),
    "x'A^-1 x in A": lambda s: (s.x.T * s.A.I * s.x, s.A),
    "dot": lambda s: (DotProduct(s.x, s.A * s.x) ** 2, s.x),
    "Cholesky": lambda s: (Trace(s.B * LofCholesky(s.X * s.X.T)), s.X),
    "Gaussian log density": lambda s: (
        -log(Determinant(s.A * s.A.T)) / 2 - number((s.x - s.b).T * (s.A * s.A.T).I * (s.x - s.b)) / 2,
        s.A,
    ),
}
MATRICES = {
    "(tX)(tX)": lambda s: ((t * s.X) * (t * s.X), t),
    "(A + tB)^-1": lambda s: ((s.A + t * s.B).I, t),
    "X itself": lambda s: (s.X, s.X),
    "diag(x) a": lambda s: (DiagMatrix(s.x) * s.a, s.x),
    "X diag(a)": lambda s: (s.X * DiagMatrix(s.a), s.a),
    "diag of X": lambda s: (DiagonalOf(s.X), s.X),
    "diagonal part of X": lambda s: (DiagonalMatrix(s.X) * s.B, s.X),
    "X∘X": lambda s: (HadamardProduct(s.X, s.X), s.X),
    "2 A∘X": lambda s: (2 * t * HadamardProduct(s.A, s.X), s.X),
    "X∘^3": lambda s: (HadamardPower(s.X, 3), s.X),
    "2∘^X": lambda s: (HadamardPower(2, s.X), s.X),
    "AXB": lambda s: (s.A * s.X * s.B, s.X),
    "X^2": lambda s: (s.X**2, s.X),
    "X^0 + X": lambda s: (sympy.MatPow(s.X, 0) * s.A + s.X, s.X),
    "X^-3": lambda s: (s.X**-3, s.X),
    "X^-1": lambda s: (s.X.I, s.X),
    "A^-1 X^-1": lambda s: (s.A.I * s.X.I, s.X),
    "B A^-1": lambda s: (s.B * s.A.I, s.A),
    "sin of the elements": lambda s: (s.x.applyfunc(sin), s.x),
    "a Lambda": lambda s: (s.X.applyfunc(Lambda(u, sin(u) * u + t)), s.X),
    "a Lambda in its parameter": lambda s: (s.X.applyfunc(Lambda(u, sin(u * t) + t)), t),
    "A⊗X": lambda s: (KroneckerProduct(s.A, s.X), s.X),
    "A⊗X⊗x": lambda s: (KroneckerProduct(s.A, s.x, s.x), s.x),
    "tr(X) X": lambda s: (Trace(s.X) * s.X, s.X),
    "A^2 x": lambda s: (s.A**2 * s.x, s.A),
    "adjoint": lambda s: (Adjoint(s.X) * s.a, s.X),
    "blocks": lambda s: (BlockMatrix([[s.X, s.x], [s.x.T, ZeroMatrix(1, 1)]]), s.x),
    "diagonal blocks": lambda s: (BlockDiagMatrix(s.X, s.A), s.X),
    "a slice": lambda s: (s.X[1:, :2] * s.A[:2, :], s.X),
    "a repeated vector": lambda s: (s.x * s.one.T + s.one * s.a.T, s.x),
    "row sums": lambda s: (s.X * s.one, s.X),
    "column sums": lambda s: (s.one.T * s.X, s.X),
    "solve": lambda s: (MatrixSolve(s.A, s.b), s.A),
    "index matrix": lambda s: (
        HadamardProduct(s.X, FunctionMatrix(s.size, s.size, Lambda((u, t), u - 2 * t + 1))),
        s.X,
    ),
    "a constant matrix": lambda s: (s.one.T * s.X + OneMatrix(1, s.size) * 3 * t, t),
    "upper Cholesky": lambda s: (UofCholesky(s.X * s.X.T + s.I), s.X),
}


def values_for(graph, size=3):
    return [floats_of(v) for v in matrix_point(graph.inputs, size).values()]


Q = MatrixSymbol("Q", 4, 3)
PARTS = {
    "rows 1 to 2": Q[1:3, :],
    "a column": Q[:, 1],
    "an element": Q[2, 1],
    "permuted rows": MatrixPermute(Q, Permutation([2, 0, 3, 1]), 0),
    "permuted columns": MatrixPermute(Q, Permutation([2, 0, 1]), 1),
    "a permutation matrix": PermutationMatrix(Permutation([1, 2, 0])) * Q.T,
    "an explicit matrix": ImmutableDenseMatrix([[1, sympy.Rational(1, 3)], [t, sin(t)]]) * Q[:2, :],
    "numbers": ImmutableDenseMatrix([[1, 2, 3], [4, 5, 6]]) * Q.T,
    "a function matrix": FunctionMatrix(3, 4, Lambda((u, t), (u + 1) / (t + 1))) * Q,
    "a row of DiagMatrix": DiagMatrix(Q[0, :]) * Q.T,
    "a Kronecker product of three": KroneckerProduct(Q[:1, :], Q[1:2, :], Q[:, 2]),
    "a block row": BlockMatrix([[Q, Q[:, :1]]]),
}
