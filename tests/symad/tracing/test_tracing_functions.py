"""Python functions traced on proxies, against NumPy and SciPy themselves."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
import scipy.special
import sympy
from sympy import MatrixSymbol, symbols

import symad
from symad import functions
from symad.core.graph import Graph
from symad.errors import ShapeError, TraceError
from symad.numeric import lower
from tests.counting import calls
from tests.symad.evaluation.agreement import tangents_agree, values_agree

rng = np.random.default_rng(5)


def positive(*shape):
    return rng.uniform(0.3, 0.9, shape)


def signed(*shape):
    return rng.uniform(-0.9, 0.9, shape)


A, B, V, W, S = signed(3, 4), signed(3, 4), signed(4), signed(4), signed(3, 3)
T, P = signed(2, 3, 4), positive(3, 4)
SPD = S @ S.T + 3 * np.eye(3)
DATA = rng.normal(size=(3, 4))


UFUNCS = [
    (name, positive(3, 4))
    for name in [
        "sin",
        "cos",
        "tan",
        "arcsin",
        "arccos",
        "arctan",
        "sinh",
        "cosh",
        "tanh",
        "arcsinh",
        "arctanh",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "cbrt",
        "square",
        "reciprocal",
        "negative",
        "positive",
        "absolute",
        "fabs",
        "sign",
        "floor",
        "ceil",
        "trunc",
        "degrees",
        "radians",
        "rad2deg",
        "deg2rad",
        "conjugate",
    ]
]
SIGNED_UFUNCS = [
    (name, signed(3, 4)) for name in ["cbrt", "absolute", "fabs", "sign", "floor", "ceil", "trunc", "square"]
]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "power",
    "float_power",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "arctan2",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "remainder",
    "fmod",
    "floor_divide",
    "heaviside",
]
SPECIAL = [
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "log_expit",
    "logit",
    "gamma",
    "gammaln",
    "digamma",
    "psi",
    "ndtr",
    "entr",
    "expm1",
    "log1p",
    "exp2",
    "cbrt",
    "j0",
    "j1",
    "y0",
    "y1",
    "i0",
    "i1",
    "k0",
    "k1",
    "ellipk",
    "ellipe",
    "exp1",
    "expi",
]


@pytest.mark.parametrize(("name", "point"), UFUNCS + SIGNED_UFUNCS)
def test_unary_ufuncs(name, point):
    values_agree(getattr(np, name), point)
    if name not in ("sign", "floor", "ceil", "trunc"):
        tangents_agree(getattr(np, name), point)


def test_arccosh():
    values_agree(np.arccosh, 1 + positive(3))


@pytest.mark.parametrize("name", BINARY)
def test_binary_ufuncs(name):
    f = getattr(np, name)
    values_agree(f, P, positive(3, 4))
    values_agree(f, P, positive(4))
    values_agree(f, positive(3, 1), positive(4))
    if name not in ("floor_divide", "heaviside"):
        tangents_agree(f, P, positive(3, 4))


@pytest.mark.parametrize("name", SPECIAL)
def test_special_ufuncs(name):
    f = getattr(scipy.special, name)
    values_agree(f, P)
    tangents_agree(f, P)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "beta", "betaln"])
def test_special_ufuncs_of_two_arguments(name):
    values_agree(getattr(scipy.special, name), P, positive(3, 4))
    tangents_agree(getattr(scipy.special, name), P, positive(3, 4))


CASES = {
    "operators": lambda a, b: (
        (a + b) * 2 - a / (b + 3) + (b + 2) ** a - 3 % (a + 2) + 7 // (b + 3) - abs(a) + +b
    ),
    "reflected": lambda a, b: 1 - a + 2 / (b + 3) + 2**a + (a + 5) // 2 + (a + 5) % 2,
    "divmod": lambda a, b: divmod(a + 3, b + 2),
    "comparisons": lambda a, b: [np.where(c, a, b) for c in (a > b, a >= b, a < b, a <= b, a == b, a != b)],
    "logic": lambda a, b: np.where((a > 0) & ~(b > 0) | (a > b) ^ (b < 0.2), a, b),
    "logical": lambda a, b: np.where(
        np.logical_and(a > 0, np.logical_not(b > 0)), a, np.logical_or(a, b) * b
    ),
    "masks are numbers": lambda a, b: (a > b) * a + (a > 0) + np.sum(b > 0, 0),
    "any and all": lambda a, b: (np.all(a > -0.5, 0) + 0.0, np.any(b > 0.5, 1) + 0.0, (a > 0).all() + 0.0),
    "count": lambda a, b: np.count_nonzero(a > 0, axis=0) + 0 * np.sum(b),
    "sum": lambda a, b: [
        np.sum(a),
        a.sum(0),
        np.sum(b, axis=1, keepdims=True),
        np.sum(b, axis=(0, 1)),
        a.sum(-1),
    ],
    "mean": lambda a, b: [np.mean(a), a.mean(0), np.mean(b, axis=1, keepdims=True)],
    "average": lambda a, b: [
        np.average(a, axis=0),
        np.average(a, axis=0, weights=np.exp(b)),
        np.average(a, weights=b + 2),
    ],
    "var": lambda a, b: [np.var(a), a.var(0), np.var(b, axis=1, keepdims=True), np.var(b, axis=0, ddof=1)],
    "std": lambda a, b: [np.std(a), b.std(axis=1, ddof=1), np.std(a, axis=0, keepdims=True)],
    "prod": lambda a, b: [np.prod(a), a.prod(0), np.prod(b, axis=1, keepdims=True)],
    "max": lambda a, b: [
        np.max(a),
        a.max(0),
        np.min(b, axis=1, keepdims=True),
        b.min(),
        np.amax(a, 0),
        np.ptp(a, 0),
    ],
    "cumsum": lambda a, b: [np.cumsum(a), np.cumsum(a, axis=0), b.cumsum(1)],
    "cumprod": lambda a, b: [np.cumprod(a), np.cumprod(a, axis=0), b.cumprod(1)],
    "diff": lambda a, b: [np.diff(a), np.diff(a, axis=0), np.diff(b, n=2)],
    "products": lambda a, b: [
        a @ b.T,
        a.T @ b,
        np.dot(a, b.T),
        np.inner(a, b),
        np.vdot(a, b),
        np.outer(a[0], b[1]),
    ],
    "vectors": lambda a, b: [a[0] @ b[1], a @ b[1], a[:, 0] @ b, np.dot(a[0], b[0]), np.inner(a[0], b[0])],
    "matmul": lambda a, b: np.matmul(a, np.swapaxes(b, 0, 1)),
    "tensordot": lambda a, b: [
        np.tensordot(a, b, 2),
        np.tensordot(a, b.T, 1),
        np.tensordot(a, b, ((1,), (1,))),
        np.tensordot(a, b, 0),
    ],
    "einsum": lambda a, b: [
        np.einsum("ij,ij->i", a, b),
        np.einsum("ij,kj", a, b),
        np.einsum("ij,ij,ij->j", a, b, a),
        np.einsum("...j,...j->...", a, b),
        np.einsum("ij->ji", a),
        np.einsum("ij->", b),
        np.einsum("ij,kj,kl,ml->im", a, b, a, b),
    ],
    "einsum implicit ellipsis": lambda a, b: np.einsum("...i,ji", a, b),
    "kron": lambda a, b: [np.kron(a, b), np.kron(a[0], b[0])],
    "cross": lambda a, b: np.cross(a[:, :3], b[:, 1:]),
    "trace": lambda a, b: [np.trace(a @ b.T), np.trace(a, offset=1), np.trace(a, -1)],
    "shapes": lambda a, b: [
        a.reshape(4, 3),
        np.reshape(a, (2, -1)),
        a.reshape((-1,)),
        a.ravel(),
        a.flatten(),
        np.ravel(b),
        a.T,
        np.transpose(a, (1, 0)),
        a.transpose(1, 0),
        np.swapaxes(a, 0, 1),
        np.expand_dims(a, 1),
        np.squeeze(a[None]),
        a[:, None, :].squeeze(1),
        np.moveaxis(a[None], 0, -1),
    ],
    "atleast": lambda a, b: [
        np.atleast_1d(a[0, 0]),
        np.atleast_2d(a[0]),
        np.atleast_3d(a[0]),
        np.atleast_3d(a),
    ],
    "broadcast": lambda a, b: [
        np.broadcast_to(a, (2, 3, 4)),
        np.broadcast_to(a[0], (3, 4)),
        *np.broadcast_arrays(a, b[0]),
    ],
    "likes": lambda a, b: [np.zeros_like(a) + b, np.ones_like(a) * b, np.full_like(a, 2.5) - b],
    "joins": lambda a, b: [
        np.concatenate([a, b]),
        np.concatenate([a, b], axis=1),
        np.concatenate((a, b), axis=None),
        np.stack([a, b]),
        np.stack([a, b], axis=-1),
        np.vstack([a, b[0]]),
        np.hstack([a, b]),
        np.hstack([a[0], b[0]]),
        np.column_stack([a[:, 0], b]),
        np.append(a, b),
    ],
    "joins with constants": lambda a, b: [
        np.concatenate([a, DATA]),
        np.stack([DATA, b]),
        np.vstack([np.zeros(4), a]),
    ],
    "split": lambda a, b: [*np.split(a, 3), *np.array_split(b, 3, axis=1), *np.split(a, [1], axis=1)],
    "repeat": lambda a, b: [
        np.repeat(a, 2),
        np.repeat(a, 3, axis=0),
        b.repeat(2, 1),
        np.tile(a, 2),
        np.tile(b, (2, 1, 3)),
    ],
    "roll": lambda a, b: [
        np.roll(a, 1),
        np.roll(a, -2, axis=1),
        np.roll(b, (1, 2), axis=(0, 1)),
        np.roll(b, 5, axis=0),
    ],
    "flip": lambda a, b: [np.flip(a), np.flip(a, 0), np.fliplr(b), np.flipud(b), a[::-1, ::-2]],
    "pad": lambda a, b: [
        np.pad(a, 1),
        np.pad(a, ((0, 1), (2, 0))),
        np.pad(b, 1, constant_values=3.0),
        *[np.pad(a, ((1, 2), (2, 1)), mode=m) for m in ("edge", "reflect", "symmetric", "wrap")],
    ],
    "diagonals": lambda a, b: [
        np.diag(a[0]),
        np.diag(a[0], 1),
        np.diag(a[0], -2),
        np.diag(a),
        np.diag(b, 1),
        np.diagonal(b, -1),
        np.diagflat(a),
        np.diagonal(np.stack([a, b]), 0, 1, 2),
    ],
    "triangles": lambda a, b: [np.tril(a), np.triu(a), np.tril(b, 1), np.triu(b, -1), np.tril(a[:, :3])],
    "where": lambda a, b: [
        np.where(a > 0, a, 0.0),
        np.where(DATA > 0, a, b),
        np.where(a > b[0], 1, b),
        np.select([a > 0.5, a > 0], [a, b], -1.0),
    ],
    "clip": lambda a, b: [np.clip(a, -0.2, 0.3), a.clip(0), np.clip(b, None, 0.15), np.clip(a, b, 0.5)],
    "take": lambda a, b: [
        np.take(a, [0, 2, 2], axis=0),
        np.take(b, 5),
        a.take([1, 1], 1),
        np.take_along_axis(a, np.array([[0], [2], [1]]), axis=1),
    ],
    "indices": lambda a, b: [
        a[0],
        a[-1],
        a[0, 1],
        a[:, 1],
        a[1:],
        a[:-1, ::2],
        a[..., 0],
        a[None, 1],
        a[:, None],
        a[[0, 2]],
        a[np.array([1, 1, 0]), [0, 2, 3]],
        a[:, [3, 0]],
        a[[[0, 1], [2, 0]]],
        a[1, [0, 2]],
        a[[0, -1]],
        a[5:],
        a[::-1],
        a[2:0:-1],
    ],
    "index arrays around": lambda a, b: [
        np.stack([a, b])[[0, 1], :, [2, 3]],
        np.stack([a, b])[0, :, [2, 3]],
        np.stack([a, b])[:, [0, 1], [2, 3]],
        a[[0, 1], None, [1, 2]],
    ],
    "known masks": lambda a, b: [a[np.array([True, False, True])], a[np.array(DATA > 0)]],
    "iteration": lambda a, b: [
        sum(row @ row for row in a),
        [x * y for x, y in zip(a[0], b[0], strict=True)][2],
    ],
    "objects": lambda a, b: [
        np.array([a[0, 0], b[1, 1]]) * 2,
        np.sin(np.array([[a[0, 0], a[1, 0]], [b[0, 0], b[0, 1]]])) @ np.array([1.0, 2.0]),
    ],
    "constants on the left": lambda a, b: [
        DATA * a,
        np.float64(2) * a,
        DATA @ b.T,
        np.arange(4) + b,
        [1, 2, 3, 4] * a,
    ],
    "reduce": lambda a, b: [
        np.add.reduce(a),
        np.multiply.reduce(b, axis=1),
        np.maximum.reduce(a),
        np.add.accumulate(a[0]),
        np.multiply.outer(a[0], b[0]),
    ],
    "sizes": lambda a, b: [
        a * a.shape[0] + a.ndim + a.size + len(b) + np.shape(a)[1] + np.ndim(b) + np.size(a)
    ],
    "same": lambda a, b: [
        np.copy(a),
        a.copy(),
        np.real(b),
        a.real,
        a.conj(),
        a.astype(float),
        np.float64(1) * np.imag(a),
    ],
}
STEPS = {"operators", "reflected", "divmod", "any and all", "count", "masks are numbers"}


@pytest.mark.parametrize("name", CASES)
def test_numpy_functions(name):
    def f(a, b):
        made = CASES[name](a, b)
        return list(made) if isinstance(made, tuple) else made

    values_agree(f, A, B)
    if name not in STEPS:
        tangents_agree(f, A, B)


LINALG = {
    "solve": lambda s, v: [np.linalg.solve(s, v), np.linalg.solve(s, np.outer(v, v))],
    "solve of stacks": lambda s, v: np.linalg.solve(np.stack([s, 2 * s]), np.outer(v, v)[None]),
    "inv": lambda s, v: np.linalg.inv(s) @ v,
    "det": lambda s, v: np.linalg.det(s) * v,
    "slogdet": lambda s, v: list(np.linalg.slogdet(s)),
    "slogdet of a negative determinant": lambda s, v: list(np.linalg.slogdet(s[[1, 0, 2]])),
    "cholesky": lambda s, v: np.linalg.cholesky((s + s.T) / 2) @ v,
    "matrix_power": lambda s, v: [
        np.linalg.matrix_power(s, 3),
        np.linalg.matrix_power(s, -2),
        np.linalg.matrix_power(s, 0) * v,
    ],
    "norm": lambda s, v: [
        np.linalg.norm(v),
        np.linalg.norm(s),
        np.linalg.norm(s, axis=0),
        np.linalg.norm(v, 1),
        np.linalg.norm(v, np.inf),
        np.linalg.norm(v, -np.inf),
        np.linalg.norm(v, 3),
        np.linalg.norm(s, 1),
        np.linalg.norm(s, -1),
        np.linalg.norm(s, np.inf),
        np.linalg.norm(s, "fro"),
        np.linalg.norm(s, axis=1, keepdims=True),
        np.linalg.norm(s, np.inf, axis=(1, 0)),
    ],
    "trace": lambda s, v: np.trace(s) * v,
}


@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra(name):
    values_agree(LINALG[name], SPD, V[:3])
    tangents_agree(LINALG[name], SPD, V[:3])


@pytest.mark.filterwarnings("ignore::sympy.utilities.exceptions.SymPyDeprecationWarning")
@pytest.mark.parametrize("name", [*CASES, *LINALG])
def test_the_way_to_sympy_and_back(name):
    points = (A, B) if name in CASES else (SPD, V[:3])
    graph = symad.trace((CASES | LINALG)[name], [p.shape for p in points])
    again = symad.trace(symad.to_sympy(graph), inputs=graph.inputs)
    for a, b in zip(again.output_nodes, graph.output_nodes, strict=True):
        found, expected = (Graph(graph.input_nodes, (y,))(*points) for y in (a, b))
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


def test_conditions_on_exact_numbers():
    f = CASES["logic"]
    exact = [np.vectorize(Fraction, otypes=[object])(p) for p in (A, B)]
    found = symad.trace(f, [(3, 4), (3, 4)])(*exact)
    assert np.array_equal(found.astype(float), f(A, B))


def test_norm_at_the_origin_has_derivative_zero():
    graph = symad.trace(np.linalg.norm, [(3,)])
    assert np.array_equal(symad.gradient(graph, wrt=0)(np.zeros(3)), np.zeros(3))


def test_stacks_of_matrices_broadcast():
    values_agree(lambda a, b: a @ b, signed(2, 1, 3, 4), signed(5, 4, 2))
    values_agree(lambda a, b: a @ b, signed(4), signed(2, 4, 3))
    values_agree(lambda t: np.einsum("bij,bkj->bik", t, t), T)


def test_float32_and_integer_constants_are_exact_numbers():
    graph = symad.trace(
        lambda x: x * np.float32(0.1) + np.int8(3) / 2 + np.arange(2, dtype=np.uint8)[1], [()]
    )
    assert graph(2.0) == 2.0 * float(np.float32(0.1)) + 1.5 + 1.0


# ---- inputs and outputs -------------------------------------------------------------------------


def test_inputs_are_symbols_examples_or_shapes():
    x, n = symbols("x n")
    dim = symbols("d", integer=True, positive=True)
    matrix = MatrixSymbol("M", 2, 3)

    def f(a, b, c, e, q):
        return a + b + c.sum() + e.sum() + q.sum()

    graph = symad.trace(f, [x, 3.0, np.ones((2, 2)), matrix, (dim, 2)])
    assert [str(s) for s in graph.inputs] == ["x", "b", "c", "M", "q"]
    assert graph.inputs[0] == x
    assert graph.inputs[3] is matrix
    assert [node.shape for node in graph.input_nodes] == [(), (), (2, 2), (2, 3), (dim, 2)]
    assert graph(1.0, 2.0, np.ones((2, 2)), np.ones((2, 3)), np.ones((5, 2))) == 1 + 2 + 4 + 6 + 10
    assert n not in graph.inputs


def test_structure_of_the_result_is_kept():
    graph = symad.trace(lambda x: {"a": (x, [x + 1]), "b": 3}, [()])
    assert graph(2.0) == {"a": (2.0, (3.0,)), "b": 3.0}


def test_varargs_and_defaults():
    graph = symad.trace(lambda x, *rest, k=2: x + k * sum(rest), [(), (), ()])
    assert [str(s) for s in graph.inputs] == ["x", "rest0", "rest1"]
    assert graph(1.0, 2.0, 3.0) == 11.0
    assert symad.trace(lambda x, k=2: k * x, [()])(4.0) == 8.0


def test_builtin_functions():
    assert symad.trace(np.sin, [()])(0.3) == np.sin(0.3)


def test_symbolic_dimensions():
    n, d = symbols("n d", integer=True, positive=True)

    def f(x, w):
        h = np.tanh(x @ w)
        centred = h - h.mean(axis=0)
        return (
            centred[1:] - centred[:-1],
            np.cumsum(h[:, -1]),
            x.shape[0] * np.ones_like(w),
            h[::-1],
            np.tril(x.T @ x),
        )

    graph = symad.trace(f, [(n, d), (d, 2)])
    x, w = signed(5, 3), signed(3, 2)
    for a, b in zip(graph(x, w), f(x, w), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_running_sums_and_products_of_symbolic_length(axis):
    """Loops of n steps: values as NumPy's, derivatives as those of the known length, nothing of size n²."""
    n, d = symbols("n d", integer=True, positive=True)

    def f(x):
        return np.sum(np.cumsum(x, axis) ** 2) + np.sum(np.sin(np.cumprod(x, axis)))

    x = signed(3, 4)
    x[1, 2] = 0.0
    open_ended, known = symad.trace(f, [(n, d)]), symad.trace(f, [(3, 4)])
    assert len(symad.gradient(open_ended).nodes) < 100
    np.testing.assert_allclose(open_ended(x), f(x), rtol=1e-13)
    np.testing.assert_allclose(symad.gradient(open_ended)(x), symad.gradient(known)(x), rtol=1e-12)
    kernel = lower(symad.gradient(open_ended))
    np.testing.assert_allclose(kernel(x), symad.gradient(known)(x), rtol=1e-12)
    long = symad.trace(lambda x: np.cumsum(x) + np.cumprod(x), [(n,)])
    many = np.full(20_000, 1.0)
    np.testing.assert_allclose(long(many)[-1], 20_001.0)


def test_symbolic_dimensions_as_numbers():
    n, d = symbols("n d", integer=True, positive=True)
    q, k, v = signed(4, 3), signed(5, 3), signed(5, 2)

    def attention(q, k, v):
        return functions.softmax(q @ k.T / sympy.sqrt(q.shape[1]), 1) @ v

    m = symbols("m", integer=True, positive=True)
    graph = symad.trace(attention, [(n, d), (m, d), (m, 2)])
    np.testing.assert_allclose(graph(q, k, v), scipy.special.softmax(q @ k.T / 3**0.5, axis=1) @ v)
    refused(lambda x: x / np.sqrt(x.shape[0]), (n,), match=r"sympy\.sqrt\(x\.shape\[0\]\)")


def test_rounding_by_the_math_module():
    assert symad.trace(lambda x: math.floor(x) + math.ceil(x), [()])(1.5) == 3.0
    refused(lambda x: round(x), (), match=r"np\.floor")


def test_tracing_is_deterministic():
    def f(x, y):
        return np.sum(np.exp(x @ y)) * sympy.sin(x[0, 0])

    assert symad.trace(f, [(3, 4), (4, 2)]).outputs == symad.trace(f, [(3, 4), (4, 2)]).outputs


# ---- SymPy inside -------------------------------------------------------------------------------


def test_sympy_functions_of_proxies():
    def f(x, y):
        return (
            sympy.sin(x) * sympy.exp(-y)
            + sympy.Max(x, y)
            + sympy.atan2(y, x)
            + sympy.Heaviside(x)
            + sympy.erf(x)
        )

    x, y = 0.4, 0.7
    expected = math.sin(x) * math.exp(-y) + y + math.atan2(y, x) + 1 + math.erf(x)
    assert symad.trace(f, [(), ()])(x, y) == pytest.approx(expected, rel=1e-14)


def test_sympy_functions_of_array_proxies_are_elementwise():
    np.testing.assert_allclose(symad.trace(lambda a: sympy.sin(a) * sympy.pi, [(3, 4)])(A), np.sin(A) * np.pi)


def test_sympy_expressions_of_proxies():
    def f(x, y):
        return sympy.sqrt(x) + sympy.Rational(1, 3) * y + sympy.Piecewise((x, x > y), (y**2, True))

    assert symad.trace(f, [(), ()])(0.25, 0.9) == pytest.approx(0.5 + 0.3 + 0.81, rel=1e-14)


def test_sympy_matrices_of_proxies():
    graph = symad.trace(lambda x, y: sympy.Matrix([[x, y], [1, x]]).det(), [(), ()])
    assert graph(2.0, 3.0) == 1.0
    graph = symad.trace(lambda x, y: sympy.Matrix([x + y, x * y]), [(), ()])
    assert np.array_equal(graph(2.0, 3.0), [[5.0], [6.0]])


def test_an_input_symbol_may_be_used_inside():
    x = symbols("x", real=True)
    assert symad.trace(lambda v: v * sympy.cos(x), [x])(0.3) == 0.3 * np.cos(0.3)


def test_an_error_of_the_function_itself_comes_out():
    def bad(x):
        raise KeyError("from inside")

    with pytest.raises(KeyError):
        symad.trace(bad, [()])


# ---- speed --------------------------------------------------------------------------------------


def _count_sympy(monkeypatch):
    counted = []
    original = sympy.Basic.__new__

    def counting(cls, *args):
        counted.append(cls)
        return original(cls, *args)

    monkeypatch.setattr(sympy.Basic, "__new__", counting)
    return counted


@pytest.mark.thorough
@pytest.mark.parametrize("head", [np.sin, sympy.sin])
def test_long_loops_build_no_sympy_expression(monkeypatch, head):
    steps = 10_000

    def f(x, v):
        for _ in range(steps):
            v = v - 0.001 * head(x)
            x = x + 0.001 * v
        return x

    inputs = list(symbols("x v", real=True))
    counted = _count_sympy(monkeypatch)
    graph = symad.trace(f, inputs)
    monkeypatch.undo()
    assert counted == []
    assert len(graph.nodes) > 4 * steps
    assert calls(lambda: symad.trace(f, inputs)) < 60 * len(graph.nodes)
    x, v = 0.5, 0.1
    for _ in range(steps):
        v = v - 0.001 * math.sin(x)
        x = x + 0.001 * v
    assert graph(0.5, 0.1) == pytest.approx(x, rel=1e-12)


# ---- errors -------------------------------------------------------------------------------------


def refused(f, *shapes, match):
    with pytest.raises((TraceError, ShapeError), match=match):
        symad.trace(f, list(shapes))


def test_branches_on_data_are_refused():
    refused(lambda x: x if x > 0 else -x, (), match=r"np\.where")
    refused(lambda x: max(x, 0), (), match=r"np\.where")
    refused(lambda x: x > 0 and x, (), match=r"np\.logical_and")
    refused(lambda x: math.sin(x), (), match="NumPy's functions instead of those of math")
    refused(lambda x: int(x), (), match="int")
    refused(lambda x: [1, 2][x], (), match="an integer")
    refused(lambda x: complex(x), (), match="real numbers")


def test_masks_of_data_are_refused():
    refused(lambda x: x[x > 0], (3,), match=r"depends on data.*np\.where\(mask, x, other\)")
    refused(lambda x: np.where(x > 0), (3,), match=r"depends on data.*np\.where\(mask, x, other\)")


def test_changing_in_place_is_refused():
    def assign(x):
        x[0] = 1.0
        return x

    def add_to_array(x):
        DATA[0, :3] += x
        return DATA

    def fill(x):
        for k in range(3):
            DATA[0, k] = x[k] ** 2
        return DATA

    refused(lambda x: assign(x.reshape(3)), (3, 1), match=r"y = y\.copy\(\)")
    refused(add_to_array, (3,), match="a = a \\+ b")
    refused(fill, (3,), match=r"fill writes a traced value into a NumPy array.*np\.stack\(list\)")
    refused(lambda x: np.float64(x), (), match="makes a NumPy number of it")


def test_unsupported_functions_are_named():
    refused(lambda x: np.unique(x), (3,), match=r"np\.unique.*depends on data")
    refused(lambda x: np.linalg.lstsq(x, x), (3, 3), match=r"lstsq.*functions\.lstsq")
    refused(lambda x: np.linalg.svd(x), (3, 3), match=r"svd\(a, compute_uv=False\)")
    refused(lambda x: np.linalg.norm(x, 7), (3, 3), match="ord=7")
    refused(lambda x: np.gcd(x, 2), (), match="gcd")
    refused(lambda x: np.sum(x, dtype=int), (1,), match="dtype")
    refused(lambda x: np.multiply.at(x, 0, 1), (3,), match=r"multiply\.at")
    refused(lambda x: x & 1, (), match="condition|bitwise")


def test_wrong_shapes_are_told():
    refused(lambda x, y: x + y, (3,), (4,), match=r"\(3,\).*\(4,\)")
    refused(lambda x: x @ x, (3, 4), match="inner dimensions")
    refused(lambda x: x[5], (3,), match="out of range")
    refused(lambda x: x[0, 0], (3,), match="2 indices")
    refused(lambda x: x.reshape(2, 2), (3,), match="reshape")
    refused(lambda x: np.sum(x, axis=2), (3,), match="axis=2, but the traced value has 1 axis")
    n = symbols("n", integer=True, positive=True)
    refused(lambda x: [v for v in x], (n,), match="length n")


def test_bad_inputs_are_told():
    def f(a, b):
        return a + b

    x, n = symbols("x n", integer=True)
    with pytest.raises(TraceError, match=r"\(a, b\)"):
        symad.trace(f)
    with pytest.raises(
        TraceError, match=r"inputs has 1 entry, but the function is f\(a, b\): missing.* 'b'; give one entry"
    ):
        symad.trace(f, [()])
    with pytest.raises(TraceError, match="the input a is given as 'x'"):
        symad.trace(f, ["x", ()])
    with pytest.raises(TraceError, match="one symbol twice"):
        symad.trace(f, [x, x])
    with pytest.raises(TraceError, match="n is a dimension"):
        symad.trace(f, [(n,), n])
    with pytest.raises(TraceError, match="no shape"):
        symad.trace(f, [sympy.IndexedBase("u"), ()])
    with pytest.raises(TraceError, match="complex"):
        symad.trace(f, [np.ones(2, complex), ()])
    with pytest.raises(TraceError, match="not a Symbol"):
        symad.trace(f, [x + 1, ()])
    with pytest.raises(TraceError, match="returned None"):
        symad.trace(lambda a: None, [()])
    with pytest.raises(TraceError, match="SymPy symbol x"):
        symad.trace(lambda a: a * x, [()])


def test_arange_over_a_symbolic_dimension():
    n = symbols("n", integer=True, positive=True)
    graph = symad.trace(lambda x: np.sum(x * functions.arange(x.shape[0])), [(n,)])
    assert graph(np.array([5.0, 6.0, 7.0])) == 20.0
    assert np.array_equal(functions.arange(3), [0, 1, 2])


# ---- random numbers ---------------------------------------------------------------------------------------


GENERATOR = np.random.default_rng(3)


def noise(n):
    return GENERATOR.normal(size=n)


DRAWS = {
    "NumPy's global generator": lambda u: u * np.random.rand(3),  # noqa: NPY002
    "Python's global generator": lambda u: u * random.random(),
    "a generator of the module": lambda u: u + GENERATOR.normal(size=3),
    "a function that draws": lambda u: u + noise(3),
    "a generator without a seed": lambda u: u + np.random.default_rng().normal(size=3),
    "a bit generator without a seed": lambda u: u + np.random.Generator(np.random.PCG64()).normal(size=3),
    "an old generator without a seed": lambda u: u + np.random.RandomState().rand(3),
}


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_drawn_while_a_function_is_traced_are_told(name):
    """They are constants: each call gives the same, which no caller of np.random expects."""
    with pytest.warns(UserWarning, match=r"drew random numbers while .*symad\.functions\.rand") as told:
        f = symad.trace(DRAWS[name], [(3,)])
    assert told[0].filename == __file__
    assert np.array_equal(f(np.ones(3)), f(np.ones(3)))


@pytest.mark.filterwarnings("error")
def test_functions_that_do_not_draw_are_traced_in_silence():
    mine = np.random.default_rng(0).normal(size=3)
    symad.trace(lambda u: u * mine + functions.rand(functions.key(0), (3,)), [(3,)])
    symad.trace(lambda u: u * np.random.default_rng(0).normal(size=3), [(3,)])
