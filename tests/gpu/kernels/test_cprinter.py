"""C text of scalar expressions, compiled for the CPU, against the same expressions in NumPy."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from sympy.codegen import cfunctions as cf

from symad.errors import LoweringError
from symad.gpu.sympy_to_cuda.operands import Style, Variable
from symad.gpu.sympy_to_cuda.printer import HELPERS, kind_of, statements
from symad.gpu.sympy_to_cuda.writers import FUNCTIONS
from symad.numeric.pairs.stable_sympy import derivative, exact_integers, program
from tests.gpu.shim.driver import CpuModule

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

PRIMS = (Path(__file__).parents[3] / "gpu" / "kernels" / "prims.h").read_text("utf-8")
X, Y, Z = sp.symbols("x y z", real=True)
K, L = sp.symbols("k l", integer=True)
VARIABLES = {
    X: Variable("x"), Y: Variable("y", level=1), Z: Variable("z", level=2),
    K: Variable("k", "int"), L: Variable("l", "int", level=1),
}  # fmt: skip

FIRST = [f(Y) for f in FUNCTIONS if f not in (sp.acosh, sp.atan2, sp.tan)]
EXPRESSIONS = [
    *FIRST, sp.acosh(1 + X), sp.tan(Y / 2), sp.atan2(Z, X),
    X * Y * Z - X - Y + 2, -X * Y, X / Y / Z, X * (Y / Z), (X + Y) / (Y + Z), X - (Y - (Z - X)),
    -(X + Y) * -(Y + Z), 3 - Y, X**2 + Y**3 + Z**-2 + X**7, sp.sqrt(X) / sp.sqrt(Y),
    X**Y, sp.Abs(X - Z), sp.sign(X - Z), sp.Heaviside(X - Z), sp.Max(X, Y, Z) - sp.Min(X, Y),
    sp.Mod(X + Z, Y), sp.floor(10 * X), sp.ceiling(10 * Y) * X,
    K * L - 3 * K + 2, sp.Mod(K - L, 5) * X, exact_integers(sp.floor((K - L) / 3)),
    exact_integers(sp.ceiling((K - L) / 7)), sp.Max(K, L, 3) - sp.Min(K, 2), sp.Abs(K - L), K**3,
    K / 3 + X, X ** K, sp.sign(K - L) + X,
    sp.Piecewise((X, X < Y), (Y, (Y < Z) & (K > L)), (Z, True)),
    sp.Piecewise((K, K < L), (L, sp.Or(sp.Not(X > Y), sp.Eq(K, 3))), (7, True)),
    sp.Piecewise((X, (X > Y) ^ (Y > Z)), (K, True)),
    derivative(sp.Max(X, Y, Z) ** 2, Y), sp.exp(-X / 2 - (Y - Z) ** 2 / 3),
    sp.pi * X + sp.E * Y + sp.Rational(1, 3), sp.Float("1e-12") * X + 1e12 * Y,
]  # fmt: skip

N = 64
RNG = np.random.default_rng(0)
POINTS = RNG.uniform(0.1, 0.95, size=(3, N))
POINTS[1, :4] = POINTS[0, :4]  # ties
POINTS[2, :2] = POINTS[0, :2]
WHOLE = RNG.integers(-20, 20, size=(2, N)).astype(np.int32)


@pytest.mark.parametrize("real", ["double", "float"])
def test_every_expression(real):
    targets = [(f"out[{k} * {N} + t]", e) for k, e in enumerate(EXPRESSIONS)]
    body = "\n  ".join(statements(targets, VARIABLES, Style(real)))
    source = f"""#define SYMAD_REAL {real}
{PRIMS}{HELPERS}
extern "C" __global__ void all(const Real* xs, const int* ks, Real* out) {{
  const int t = threadIdx.x, k = ks[t], l = ks[{N} + t];
  const Real x = xs[t], y = xs[{N} + t], z = xs[{2 * N} + t];
  {body}
}}"""
    dtype = np.float64 if real == "double" else np.float32
    points = POINTS.astype(dtype)
    out = np.empty((len(EXPRESSIONS), N), dtype)
    CpuModule(source).get_function("all")((1,), (N,), (points, WHOLE, out))
    exact = program(EXPRESSIONS, [X, Y, Z, K, L])(*points.astype(float), *WHOLE.astype(int))
    ulp = 2.0**-52 if real == "double" else 2.0**-23
    for expr, found, expected in zip(EXPRESSIONS, out, exact, strict=True):
        expected = np.broadcast_to(expected, (N,))
        steps = expr.has(sp.floor, sp.ceiling, sp.Mod) and expr.has(X, Y)
        away = np.ones(N, bool)
        if steps:  # rounding may cross a step
            inner = next(iter(expr.atoms(sp.floor, sp.ceiling, sp.Mod)))
            value = inner.args[0] / (inner.args[1] if isinstance(inner, sp.Mod) else 1)
            (value,) = program([value], [X, Y, Z, K, L])(*points.astype(float), *WHOLE)
            away = np.abs(value - np.round(value)) > 1e-5
        error = np.abs(found - expected) / np.maximum(np.abs(expected), 1)
        assert (error[away] < 40 * ulp).all(), expr
        assert away.sum() > N // 2


def test_slowly_changing_factors_stand_together():
    lines = statements([("t", X * Z * Y * X**2 / 7)], VARIABLES, Style("double"))
    assert lines[-1] == "t = ((0.14285714285714285 * w0) * y) * z;"
    lines = statements([("t", X + Z - Y + 1)], VARIABLES, Style("double"))
    assert lines == ["const double w0 = ((1.0 + x) - y) + z;", "t = w0;"]


def test_shared_parts_get_one_name():
    shared = sp.tanh(X * Y)
    text = "\n".join(statements([("a", shared + 1), ("b", shared**2)], VARIABLES, Style()))
    assert text.count("tanhf") == 1


def test_float_exponentials_are_powers_of_two_with_a_folded_factor():
    (line, *_) = statements([("a", sp.exp(-X / 2))], VARIABLES, Style("float"))
    assert "exp2f((-0.7213475" in line
    (line, *_) = statements([("a", sp.exp(-X / 2))], VARIABLES, Style("double"))
    assert "exp(" in line and "exp2" not in line


def test_kinds():
    assert kind_of(K * L + 1, VARIABLES) == "int"
    assert kind_of(K * X, VARIABLES) == "real"
    assert kind_of(K / 2, VARIABLES) == "real"
    assert kind_of((K > 2) & (X < 1), VARIABLES) == "bool"


def test_infinities():
    targets = [("a", sp.Piecewise((-sp.oo, X < 0), (X, True)))]
    assert "-1.0f / 0.0f" in "".join(statements(targets, VARIABLES, Style()))


def test_errors():
    with pytest.raises(LoweringError, match="unknown symbol w"):
        statements([("a", sp.Symbol("w") + X)], VARIABLES, Style())
    with pytest.raises(LoweringError, match="zeta in"):
        statements([("a", sp.zeta(X))], VARIABLES, Style())
    with pytest.raises(LoweringError, match="'half'"):
        Style("half")


def test_code_functions_are_known():
    assert {cf.log1p, cf.expm1, cf.log2, cf.exp2} <= set(FUNCTIONS)
