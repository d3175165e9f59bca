"""Matrix derivatives as printed in books and papers other than the Matrix Cookbook.

Giles: "An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation", 2008; an output's adjoint W there is the derivative of tr(W'C) here. Boyd and
Vandenberghe: "Convex Optimization", 2004. Bishop: "Pattern Recognition and Machine Learning", 2006.
Hastie, Tibshirani, Friedman: "The Elements of Statistical Learning", 2009. Laue, Mitterreiter, Giesen:
"Computing Higher Order Derivatives of Matrix and Tensor Expressions", 2018. ``wrong`` holds the same formula
without a transpose, a sign or a factor, a mistake found in lecture notes and forums.
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
    exp,
    log,
    tanh,
)
from sympy.matrices.expressions.diagonal import DiagMatrix
from sympy.matrices.expressions.hadamard import HadamardPower

from tests.known.matrix_identities import MatrixIdentity, number

_v = Symbol("v", real=True)
EXP, TANH, LOG = Lambda(_v, exp(_v)), Lambda(_v, tanh(_v)), Lambda(_v, log(_v))
SIGMOID, SOFTPLUS = Lambda(_v, 1 / (1 + exp(-_v))), Lambda(_v, log(1 + exp(_v)))
SLOPE_TANH, RECIPROCAL = Lambda(_v, 1 - tanh(_v) ** 2), Lambda(_v, 1 / _v)


def identities(N: Any, M: Any) -> list[MatrixIdentity]:
    """All identities; N and M are numbers or symbols."""
    return [*giles(N, M), *regression(N, M), *gaussian(N), *convex(N, M), *learning(N, M)]


def _from(book: str) -> Any:
    def make(*args: Any, **options: Any) -> MatrixIdentity:
        return MatrixIdentity(*args, **options, book=book)

    return make


def giles(N: Any, M: Any) -> list[MatrixIdentity]:
    """Adjoints of matrix operations."""
    entry = _from("Giles (2008), section")
    A, B, W, X = (MatrixSymbol(name, N, N) for name in "ABWX")
    Z, U, P = MatrixSymbol("Z", N, M), MatrixSymbol("U", N, M), MatrixSymbol("P", M, M)
    w, p, q, r = (Symbol(name, real=True) for name in "wpqr")
    C, S = Z.T * A * Z, Z.T * A.I * Z
    return [
        entry("addition", Trace(W.T * (A + B)), A, W, "2.2.1", wrong=(W.T,)),
        entry("subtraction", Trace(W.T * (A - B)), B, -W, "2.2.1", wrong=(W,)),
        entry("product, left", Trace(U.T * A * Z), A, U * Z.T, "2.2.2", wrong=(Z * U.T,)),
        entry("product, right", Trace(U.T * A * Z), Z, A.T * U, "2.2.2", wrong=(A * U,)),
        entry("inverse", Trace(W.T * A.I), A, -A.I.T * W * A.I.T, "2.2.3", wrong=(-A.I * W * A.I,)),
        entry("determinant", w * Determinant(A), A, w * Determinant(A) * A.I.T, "2.2.4",
              wrong=(w * Determinant(A) * A.I,)),
        entry("inverse product, right", Trace(U.T * A.I * Z), Z, A.I.T * U, "2.3.1", wrong=(A.I * U,)),
        entry("inverse product, left", Trace(U.T * A.I * Z), A, -A.I.T * U * (A.I * Z).T, "2.3.1",
              wrong=(A.I.T * U * (A.I * Z).T,)),
        entry("first quadratic form in A", Trace(P.T * C), A, Z * P * Z.T, "2.3.2", wrong=(Z * P.T * Z.T,)),
        entry("first quadratic form in B", Trace(P.T * C), Z, A * Z * P.T + A.T * Z * P, "2.3.2",
              wrong=(2 * A * Z * P,)),
        entry("second quadratic form in A", Trace(P.T * S), A, -A.I.T * Z * P * Z.T * A.I.T, "2.3.3",
              wrong=(-A.I * Z * P * Z.T * A.I,)),
        entry("second quadratic form in B", Trace(P.T * S), Z, A.I * Z * P.T + A.I.T * Z * P, "2.3.3",
              wrong=(2 * A.I * Z * P,)),
        entry("matrix polynomial", Trace(W.T * (p * X + q * X**2 + r * X**3)), X,
              p * W + q * (X.T * W + W * X.T) + r * (X.T**2 * W + X.T * W * X.T + W * X.T**2), "2.3.4",
              wrong=(p * W + 2 * q * X.T * W + 3 * r * X.T**2 * W,)),
    ]  # fmt: skip


def regression(N: Any, M: Any) -> list[MatrixIdentity]:
    """Least squares, ridge and logistic regression; Z is the design, one observation a row."""
    elements, bishop = _from("Hastie et al. (2009), equation"), _from("Bishop (2006), equation")
    Z, x, b = MatrixSymbol("Z", N, M), MatrixSymbol("x", M, 1), MatrixSymbol("b", N, 1)
    ones, lam = OneMatrix(N, 1), Symbol("lambda", positive=True)
    rest, scores = b - Z * x, Z * x
    squares, ridge = rest.T * rest, rest.T * rest + lam * x.T * x
    entropy = ones.T * scores.applyfunc(SOFTPLUS) - b.T * scores
    chance = scores.applyfunc(SIGMOID)
    return [
        elements("residual sum of squares", squares, x, -2 * Z.T * rest, "3.4",
                 wrong=(2 * Z.T * rest, -Z.T * rest)),
        elements("residual sum of squares, twice", squares, x, 2 * Z.T * Z, "3.4", kind="hessian",
                 wrong=(Z.T * Z,)),
        elements("ridge", ridge, x, -2 * Z.T * rest + 2 * lam * x, "3.41",
                 wrong=(-2 * Z.T * rest + lam * x,)),
        elements("ridge, twice", ridge, x, 2 * Z.T * Z + 2 * lam * Identity(M), "3.43", kind="hessian",
                 wrong=(2 * Z.T * Z + lam * Identity(M),)),
        bishop("cross entropy", entropy, x, Z.T * (chance - b), "4.91",
               wrong=(Z.T * (b - chance),)),
        bishop("cross entropy, twice", entropy, x,
               Z.T * DiagMatrix(HadamardProduct(chance, ones - chance)) * Z, "4.97", kind="hessian",
               wrong=(Z.T * DiagMatrix(chance) * Z,)),
        elements("fitted values", Z * x, x, Z, "3.3", kind="jacobian"),
    ]  # fmt: skip


def gaussian(N: Any) -> list[MatrixIdentity]:
    """The logarithm of a normal density, up to a constant; derivatives in S do not use its symmetry."""
    bishop = _from("Bishop (2006), equation")
    S, R = MatrixSymbol("S", N, N), MatrixSymbol("R", N, N)
    x, m = MatrixSymbol("x", N, 1), MatrixSymbol("m", N, 1)
    V = R + R.T  # symmetric
    density = -number((x - m).T * V.I * (x - m)) / 2 - log(Determinant(V)) / 2
    free = -number((x - m).T * S.I * (x - m)) / 2 - log(Determinant(S)) / 2
    precision = -number((x - m).T * S * (x - m)) / 2 + log(Determinant(S)) / 2
    return [
        bishop("log density in x", density, x, -V.I * (x - m), "2.43", wrong=(V.I * (x - m),)),
        bishop("log density in the mean", density, m, V.I * (x - m), "2.120", wrong=(-V.I * (x - m),)),
        bishop("log density in x, twice", density, x, -V.I, "2.43", kind="hessian", wrong=(-2 * V.I,)),
        bishop("log density in the covariance", free, S,
               S.I.T * (x - m) * (x - m).T * S.I.T / 2 - S.I.T / 2, "2.122",
               wrong=(-S.I.T * (x - m) * (x - m).T * S.I.T / 2 - S.I.T / 2,)),
        bishop("log density in the precision", precision, S, -(x - m) * (x - m).T / 2 + S.I.T / 2, "2.43",
               wrong=(-(x - m) * (x - m).T / 2 - S.I.T / 2,)),
    ]  # fmt: skip


def convex(N: Any, M: Any) -> list[MatrixIdentity]:
    """Log-sum-exp, logarithmic barriers, and compositions with an affine function."""
    entry = _from("Boyd, Vandenberghe (2004), section")
    A, P = MatrixSymbol("A", N, M), MatrixSymbol("P", M, M)
    X, B = MatrixSymbol("X", M, M), MatrixSymbol("B", M, M)
    x, b, c = MatrixSymbol("x", M, 1), MatrixSymbol("b", N, 1), MatrixSymbol("c", M, 1)
    ones, short = OneMatrix(N, 1), OneMatrix(M, 1)
    z = (A * x + b).applyfunc(EXP)
    mass, y = number(ones.T * z), x.applyfunc(EXP)
    whole, slack = number(short.T * y), b - A * x
    barrier = -ones.T * slack.applyfunc(LOG)
    over = slack.applyfunc(RECIPROCAL)
    return [
        entry("quadratic function", x.T * P * x / 2 + c.T * x, x, (P + P.T) * x / 2 + c, "A.4.1",
              wrong=(P * x + c,)),
        entry("log det", log(Determinant(X)), X, X.I.T, "A.4.1", wrong=(X.I,)),
        entry("log-sum-exp", log(whole), x, y / whole, "3.1.5", wrong=(y,)),
        entry("log-sum-exp, twice", log(whole), x, DiagMatrix(y) / whole - y * y.T / whole**2, "3.1.5",
              kind="hessian", wrong=(DiagMatrix(y) / whole + y * y.T / whole**2, DiagMatrix(y) / whole)),
        entry("log-sum-exp of an affine function", log(mass), x, A.T * z / mass, "A.4.2",
              wrong=(A.T * z,)),
        entry("log-sum-exp of an affine function, twice", log(mass), x,
              A.T * (DiagMatrix(z) / mass - z * z.T / mass**2) * A, "A.4.4", kind="hessian",
              wrong=(A.T * (DiagMatrix(z) / mass - z * z.T / mass) * A,)),
        entry("barrier of inequalities", barrier, x, A.T * over, "11.2.1", wrong=(-A.T * over,)),
        entry("barrier of inequalities, twice", barrier, x, A.T * DiagMatrix(HadamardPower(over, 2)) * A,
              "11.2.1", kind="hessian", wrong=(A.T * DiagMatrix(over) * A,)),
        entry("log det along an affine function", log(Determinant(B + X)), X, (B + X).I.T, "A.4.1",
              wrong=(B.I.T + X.I.T,)),
    ]  # fmt: skip


def learning(N: Any, M: Any) -> list[MatrixIdentity]:
    """Factorisations and layers."""
    laue = _from("Laue et al. (2018), section")
    usual = _from("Goodfellow, Bengio, Courville, Deep Learning (2016), section")
    T, U, V = MatrixSymbol("T", N, N), MatrixSymbol("U", N, M), MatrixSymbol("V", N, M)
    W, x, a, b = (
        MatrixSymbol("W", N, M), MatrixSymbol("x", M, 1), MatrixSymbol("a", N, 1), MatrixSymbol("b", N, 1)
    )  # fmt: skip
    X, G, H = MatrixSymbol("X", M, N), MatrixSymbol("G", N, N), MatrixSymbol("H", N, N)
    rest = T - U * V.T
    hidden = (W * x + b).applyfunc(TANH)
    slope = HadamardProduct(a, (W * x + b).applyfunc(SLOPE_TANH))
    return [
        laue("matrix factorization in U", Trace(rest.T * rest), U, -2 * rest * V, "4",
             wrong=(-2 * rest.T * V, 2 * rest * V)),
        laue("matrix factorization in V", Trace(rest.T * rest), V, -2 * rest.T * U, "4",
             wrong=(-2 * rest * U,)),
        laue("quadratic form, twice", x.T * (W.T * W) * x, x, 2 * W.T * W, "4", kind="hessian",
             wrong=(W.T * W,)),
        usual("linear layer in its weights", Trace(G.T * (W * X)), W, G * X.T, "6.5"),
        usual("linear layer in its inputs", Trace(G.T * (W * X)), X, W.T * G, "6.5"),
        usual("tanh layer in its weights", a.T * hidden, W, slope * x.T, "6.5",
              wrong=(a * x.T, HadamardProduct(a, hidden) * x.T)),
        usual("tanh layer in its bias", a.T * hidden, b, slope, "6.5", wrong=(a,)),
        usual("tanh layer in its input", a.T * hidden, x, W.T * slope, "6.5", wrong=(W.T * a,)),
        usual("tanh layer in its last weights", a.T * hidden, a, hidden, "6.5"),
        usual("elementwise squares", Trace(H.T * HadamardPower(G, 2)), G, 2 * HadamardProduct(G, H), "6.5",
              wrong=(HadamardProduct(G, H),)),
        usual("elementwise product", Trace(T.T * HadamardProduct(G, H)), G, HadamardProduct(T, H), "6.5",
              wrong=(HadamardProduct(T, G),)),
        usual("weight decay", Trace(W.T * W) / 2, W, W, "7.1.1", wrong=(2 * W,)),
    ]  # fmt: skip
