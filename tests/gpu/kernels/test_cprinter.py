"""C text of scalar expressions, compiled for the CPU, against the same expressions in 30 digits."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from sympy.codegen import cfunctions as cf

from symad.errors import LoweringError
from symad.gpu.device_formulas import Device, DeviceVariable, kind_of
from symad.numeric.pairs.stable_sympy import derivative, exact_integers
from symad.numeric.targets.c_functions import MATH_H
from symad.sympy_functions import scalar_functions as own
from tests.gpu.shim.driver import CpuModule
from tests.numeric.passes.digits import values

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

PRIMS = (Path(__file__).parents[3] / "gpu" / "kernels" / "prims.h").read_text("utf-8")
X, Y, Z = sp.symbols("x y z", real=True)
K, L = sp.symbols("k l", integer=True)
VARIABLES = {
    X: DeviceVariable("x"), Y: DeviceVariable("y", level=1), Z: DeviceVariable("z", level=2),
    K: DeviceVariable("k", "int"), L: DeviceVariable("l", "int", level=1),
}  # fmt: skip

FIRST = [f(Y) for f in MATH_H if f not in (sp.acosh, sp.atan2, sp.tan, cf.hypot)]
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
    own.silu(X - Y) + own.softplus(Y - Z), own.sigmoid(X) * own.relu(Z - X), own.gelu(X),
    sp.pi * X + sp.E * Y + sp.Rational(1, 3), sp.Float("1e-12") * X + 1e12 * Y,
]  # fmt: skip

N = 64
RNG = np.random.default_rng(0)
POINTS = RNG.uniform(0.1, 0.95, size=(3, N))
POINTS[1, :4] = POINTS[0, :4]  # ties
POINTS[2, :2] = POINTS[0, :2]
WHOLE = RNG.integers(-20, 20, size=(2, N)).astype(np.int32)


@pytest.mark.thorough
@pytest.mark.parametrize("real", ["double", "float"])
def test_every_expression(real):
    targets = [(f"out[{k} * {N} + t]", e) for k, e in enumerate(EXPRESSIONS)]
    device = Device(real)
    body = "\n  ".join(device.statements(targets, VARIABLES))
    source = f"""#define SYMAD_REAL {real}
{PRIMS}{device.preamble()}
extern "C" __global__ void all(const Real* xs, const int* ks, Real* out) {{
  const int t = threadIdx.x, k = ks[t], l = ks[{N} + t];
  const Real x = xs[t], y = xs[{N} + t], z = xs[{2 * N} + t];
  {body}
}}"""
    dtype = np.float64 if real == "double" else np.float32
    points = POINTS.astype(dtype)
    out = np.empty((len(EXPRESSIONS), N), dtype)
    CpuModule(source).get_function("all")((1,), (N,), (points, WHOLE, out))
    exact = values(EXPRESSIONS, [X, Y, Z, K, L], [*points.astype(float), *WHOLE.astype(int)])
    ulp = 2.0**-52 if real == "double" else 2.0**-23
    for expr, found, expected in zip(EXPRESSIONS, out, exact, strict=True):
        steps = expr.has(sp.floor, sp.ceiling, sp.Mod) and expr.has(X, Y)
        away = np.ones(N, bool)
        if steps:  # rounding may cross a step
            inner = next(iter(expr.atoms(sp.floor, sp.ceiling, sp.Mod)))
            value = inner.args[0] / (inner.args[1] if isinstance(inner, sp.Mod) else 1)
            (value,) = values([value], [X, Y, Z, K, L], [*points.astype(float), *WHOLE])
            away = np.abs(value - np.round(value)) > 1e-5
        error = np.abs(found - expected) / np.maximum(np.abs(expected), 1)
        assert (error[away] < 40 * ulp).all(), expr
        assert away.sum() > N // 2


def test_slowly_changing_factors_stand_together():
    lines = Device("double").statements([("t", X * Z * Y * X**2 / 7)], VARIABLES)
    assert lines[2:] == [
        "const double w2 = w1*y;",
        "const double w3 = w2*z;",
        "t = w3;",
    ]
    assert lines[1] == "const double w1 = 0.14285714285714285*w0;"
    lines = Device("double").statements([("t", X + Z - Y + 1)], VARIABLES)
    assert lines == [
        "const double w0 = 1.0 + x;",
        "const double w1 = w0 - y;",
        "const double w2 = w1 + z;",
        "t = w2;",
    ]


def test_shared_parts_get_one_name():
    shared = sp.tanh(X * Y)
    text = "\n".join(Device().statements([("a", shared + 1), ("b", shared**2)], VARIABLES))
    assert text.count("tanhf") == 1


def test_float_exponentials_are_powers_of_two_with_a_folded_factor():
    lines = Device("float").statements([("a", sp.exp(-X / 2))], VARIABLES)
    assert lines[:2] == ["const float w0 = -0.7213475204444817f*x;", "const float w1 = exp2f(w0);"]
    lines = Device("double").statements([("a", sp.exp(-X / 2))], VARIABLES)
    assert lines[1] == "const double w1 = exp(w0);"


def test_kinds():
    assert kind_of(K * L + 1, VARIABLES) == "int"
    assert kind_of(K * X, VARIABLES) == "real"
    assert kind_of(K / 2, VARIABLES) == "real"
    assert kind_of((K > 2) & (X < 1), VARIABLES) == "bool"
    assert kind_of(sp.Integer(2), VARIABLES) == "int"


def test_infinities():
    targets = [("a", sp.Piecewise((-sp.oo, X < 0), (X, True)))]
    assert "-(1.0f / 0.0f)" in "".join(Device().statements(targets, VARIABLES))


def test_errors():
    with pytest.raises(LoweringError, match="unknown symbol w"):
        Device().statements([("a", sp.Symbol("w") + X)], VARIABLES)
    with pytest.raises(LoweringError, match="zeta has no form"):
        Device().statements([("a", sp.zeta(X))], VARIABLES)
    with pytest.raises(LoweringError, match="'half'"):
        Device("half")


def test_layers_functions_have_text_with_their_helpers():
    """The functions of neural networks, which scores in CUDA refused."""
    device = Device()
    device.statements([("a", own.silu(X) + own.softplus(X)), ("b", sp.Mod(X, Y))], VARIABLES)
    assert {"silu", "logaddexp", "mod"} <= {*device.helpers}
    assert all(f"float symad_real_{name}(" in device.preamble() for name in ("silu", "logaddexp", "mod"))
