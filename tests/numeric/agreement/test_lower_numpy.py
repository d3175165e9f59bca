"""Generated NumPy code: values, semantics, names, saving; against graph evaluation and mpmath."""

from __future__ import annotations

import ast
import importlib.util
import math
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.graph import Graph, Node
from symad.numeric import lower
from symad.op_examples import EXAMPLES
from symad.ops.arrays.reduction import extreme
from symad.ops.basic.arithmetic import add, div, mul
from symad.ops.basic.contraction import einsum, matmul, matrix_transpose, sum_all
from symad.ops.basic.sources import constant, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.linalg.cholesky import cholesky
from symad.ops.linalg.solve_det import determinant, inverse, log_determinant, solve

x, y, z = sp.symbols("x y z", real=True)

SCALARS = [
    x * y / z - x**3 + 2 * z,
    sp.sin(x) * sp.exp(-y / 3) + sp.sqrt(x**2 + y**2),
    sp.Piecewise((x**2, x > y), (sp.sin(z), sp.And(y > 0, z > 0)), (y, True)),
    sp.Max(x, y, z) - sp.Min(x, y) + sp.Abs(x - y) * sp.sign(z),
    sp.erf(x) + sp.gamma(y) + sp.besselj(1, z) + sp.loggamma(z + 1),
    sp.atan2(x, y) + sp.asinh(z) + sp.acoth(2 + x**2) + sp.sech(y),
    sp.floor(3 * x) + sp.ceiling(y) + sp.Heaviside(z) + sp.Mod(x, 1),
    x**y + sp.cbrt(z) + 2**x + sp.pi * sp.E,
]
POINTS = np.random.default_rng(1).uniform(0.2, 1.9, size=(5, 3))


@pytest.mark.parametrize("e", SCALARS, ids=str)
@pytest.mark.parametrize("derived", [symad.trace, symad.gradient, symad.hessian])
def test_scalar_code_equals_high_precision(e: sp.Expr, derived: object) -> None:
    graph = derived(symad.trace(e, (x, y, z)))  # type: ignore[operator]
    kernel = lower(graph)
    for row in POINTS:
        with mpmath.workdps(40):
            exact = graph(*[mpmath.mpf(v) for v in row])
        expected = np.array(exact, dtype=float)
        assert np.allclose(kernel(*row.tolist()), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("e", SCALARS, ids=str)
def test_batches_equal_points(e: sp.Expr) -> None:
    kernel = lower(symad.hessian(symad.trace(e, (x, y, z))))
    batch = kernel(*POINTS.T)
    assert batch.shape == (5, 3, 3)
    for row, value in zip(POINTS, batch, strict=True):
        assert np.allclose(kernel(*row.tolist()), value, rtol=1e-12, atol=1e-14)


def test_scalar_code_never_raises_where_ieee_has_a_value() -> None:
    assert lower(1 / x)(0.0) == math.inf
    assert np.isnan(lower(sp.log(x))(-1.0))
    assert lower(sp.log(x))(0.0) == -math.inf
    assert lower(sp.exp(x))(1e4) == math.inf
    assert np.isnan(lower(sp.sin(x))(math.inf))
    assert np.isnan(lower(sp.sqrt(x))(-1.0))
    assert np.isnan(lower(x ** sp.Rational(1, 3))(-8.0))
    assert np.isnan(lower(sp.Max(x, 1.0))(math.nan))
    assert np.isnan(lower(sp.sign(x))(math.nan))
    assert lower(sp.Piecewise((1 / x, x > 0), (0, True)))(0.0) == 0.0
    assert lower(sp.floor(x))(-2.5) == -3.0


@pytest.mark.parametrize("value", [0.3, 1e-18, 1e-9, 50.0, 800.0, -800.0])
@pytest.mark.parametrize(
    "e",
    [
        sp.log(1 + sp.exp(x)),
        sp.exp(x) - 1,
        1 - sp.cos(x),
        1 / (1 + sp.exp(-x)),
        sp.exp(x) / (1 + sp.exp(x)),
        sp.log(sp.exp(x) + sp.exp(-x)),
        sp.log(1 + x**2),
        sp.sqrt(1 + x**2) - 1,
    ],
    ids=str,
)
def test_stable_forms_lose_no_digits(e: sp.Expr, value: float) -> None:
    with mpmath.workdps(700):
        exact = symad.trace(e)(mpmath.mpf(value))
        expected = float(exact) if abs(exact) < mpmath.mpf("1.7e308") else math.inf
    assert float(lower(e)(value)) == pytest.approx(expected, rel=1e-14, abs=1e-300)


def test_difference_of_squares_keeps_its_digits() -> None:
    a, b = 1.0 + 2.0**-30, 1.0
    assert lower(x**2 - y**2)(a, b) == pytest.approx((a - b) * (a + b), rel=1e-16)


@pytest.mark.parametrize("e", [x**2 / y, sp.sin(x) * y], ids=str)
def test_float32(e: sp.Expr) -> None:
    kernel = lower(e, dtype="float32")
    value = kernel(np.float32(0.3), np.float32(0.7))
    assert value.dtype == np.float32
    assert float(value) == pytest.approx(float(e.subs({x: 0.3, y: 0.7})), rel=1e-6)


def test_packed_takes_and_returns_flat_vectors() -> None:
    xs = sp.symbols("x0:40")
    f = sp.Add(*[s**2 for s in xs])
    kernel = lower(symad.gradient(f, xs), packed=True)
    assert np.array_equal(kernel(np.arange(40.0)), 2 * np.arange(40.0))
    with pytest.raises(ValueError, match="shape"):
        kernel(np.arange(39.0))


AWKWARD = [
    "lambda", "x[0]", r"\hat{y}", "π", "np", "numpy", "exp", "sin", "v1", "_body", "print", "a b", "1st", "",
    "f", "math", 'quote"', "new\nline", "pack", "where", "__import__('os')", "True", "ﬁ", "erf",
]  # fmt: skip


def test_names_are_made_safe() -> None:
    symbols = [sp.Symbol(name, real=True) for name in AWKWARD]
    f = (
        sp.Add(*[(k + 1) * sp.sin(s) for k, s in enumerate(symbols)])
        + sp.exp(symbols[0])
        + sp.erf(symbols[1])
    )
    values = np.linspace(0.1, 1.0, len(symbols))
    expected = (
        sum((k + 1) * math.sin(v) for k, v in enumerate(values))
        + math.exp(values[0])
        + math.erf(values[1])
    )
    kernel = lower(symad.trace(f, symbols))
    assert kernel(*values.tolist()) == pytest.approx(expected, rel=1e-13)
    called = {node.id for node in ast.walk(ast.parse(kernel.source)) if isinstance(node, ast.Name)}
    assert "__import__" not in called


def test_two_symbols_of_one_name() -> None:
    a, b = sp.Symbol("x", positive=True), sp.Symbol("x", real=True)
    graph = symad.trace(a - 2 * b, inputs=[a, b])
    assert graph(1.0, 5.0) == lower(graph)(1.0, 5.0) == -9.0


@pytest.mark.thorough
def test_saved_file_stands_alone(tmp_path: Path) -> None:
    kernel = lower(symad.hessian(sp.erf(x) * sp.acoth(y) + sp.Max(x, y), (x, y)))
    path = tmp_path / "model.py"
    kernel.save(path)
    code = f"""
import sys
sys.modules["symad"] = None
sys.path.insert(0, {str(tmp_path)!r})
import model
print(model.{kernel.name}(0.5, 3.0).tolist())
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert np.allclose(np.array(eval_list(result.stdout)), kernel(0.5, 3.0), rtol=1e-15)
    spec = importlib.util.spec_from_file_location("model", path)
    assert spec is not None


def eval_list(text: str) -> list[list[float]]:
    rows = text.strip().removeprefix("[[").removesuffix("]]").split("], [")
    return [[float(v) for v in row.split(", ")] for row in rows]


def test_no_repeated_subexpression() -> None:
    f = sp.sin(x * y) + sp.sin(x * y) ** 2 + sp.cos(x * y)
    source = lower(symad.gradient(f, (x, y))).source
    assert source.count("sin(v") == 1
    assert source.count("x*y") == 1


@pytest.mark.thorough
def test_long_functions_compile() -> None:
    with sp.evaluate(False):
        f = x
        for _ in range(10_000):
            f = sp.Add(sp.sin(f, evaluate=False), 1, evaluate=False)
    value = 0.3
    for _ in range(10_000):
        value = math.sin(value) + 1
    assert lower(f)(0.3) == pytest.approx(value, rel=1e-12)


@pytest.mark.thorough
def test_sums_of_many_terms_compile() -> None:
    xs = sp.symbols("x0:3000")
    f = sp.Add(*xs) * sp.Mul(*xs[:100])
    values = np.linspace(0.99, 1.01, 3000)
    assert lower(symad.trace(f, xs), packed=True)(values) == pytest.approx(
        values.sum() * values[:100].prod(), rel=1e-12
    )


# ---- arrays --------------------------------------------------------------------------------------


def matrix(name: str, *shape: object) -> object:
    return input_node(sp.MatrixSymbol(name, *shape), shape)


n, d = sp.symbols("n d", integer=True, positive=True)


def layer() -> Graph:
    w, v = matrix("W", d, n), matrix("X", n, 1)
    b = input_node(sp.Symbol("b", real=True))
    h = apply(sp.tanh, add(matmul(w, v), b))  # type: ignore[arg-type]
    return Graph((w, v, b), (sum_all(mul(h, h)),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "derived", [lambda g: g, symad.gradient, symad.hessian, symad.value_and_gradient]
)
def test_arrays_with_symbolic_dimensions(derived: object) -> None:
    graph = derived(layer())  # type: ignore[operator]
    rng = np.random.default_rng(0)
    kernel = lower(graph)
    for shape in [(2, 3), (1, 1), (4, 2)]:
        values = (rng.normal(size=shape), rng.normal(size=(shape[1], 1)), 0.3)
        for ours, expected in zip(flat(kernel(*values)), flat(graph(*values)), strict=True):
            assert np.allclose(ours, expected, rtol=1e-12, atol=1e-14)


def flat(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def test_generated_code_checks_shapes() -> None:
    kernel = lower(layer())
    with pytest.raises(ValueError, match="X must have shape"):
        kernel(np.ones((2, 3)), np.ones((4, 1)), 0.0)
    with pytest.raises(ValueError, match="W must have shape"):
        kernel(np.ones(3), np.ones((3, 1)), 0.0)
    with pytest.raises(TypeError, match="W must hold real numbers"):
        kernel(np.ones((2, 3)) * 1j, np.ones((3, 1)), 0.0)
    with pytest.raises(TypeError, match="b must hold real numbers"):
        kernel(np.ones((2, 3)), np.ones((3, 1)), "1.5")


def array_graphs() -> list[Graph]:
    a, b, c = matrix("A", 3, 3), matrix("B", 3, 2), matrix("C", 3, 3)
    shifted = add(matmul(a, matrix_transpose(a)), mul(constant(3), input_eye(3)))  # type: ignore[arg-type]
    outputs = [
        solve(shifted, b),  # type: ignore[arg-type]
        inverse(shifted),
        add(determinant(shifted), log_determinant(shifted)),
        cholesky(shifted),
        einsum("ij,ik->jk", b, c),  # type: ignore[arg-type]
        einsum("ij,jk,kl->il", a, c, b),  # type: ignore[arg-type]
        einsum("ii->i", c),  # type: ignore[arg-type]
        einsum("ij,kj->ik", a, c),  # type: ignore[arg-type]
        extreme("max", c, (0,)),  # type: ignore[arg-type]
    ]
    return [Graph((a, b, c), (output,)) for output in outputs]  # type: ignore[arg-type]


def input_eye(k: int) -> object:
    from symad.ops.basic.sources import eye

    return eye(k)


@pytest.mark.parametrize("graph", array_graphs(), ids=lambda g: str(g.output_nodes[0].op)[:40])
@pytest.mark.parametrize("mode", ["value", "forward", "reverse"])
def test_array_code_equals_evaluation(graph: Graph, mode: str) -> None:
    derived = graph if mode == "value" else symad.jacobian(graph, mode=mode)
    rng = np.random.default_rng(0)
    values = [rng.normal(size=node.shape) for node in graph.input_nodes]
    assert np.allclose(lower(derived)(*values), derived(*values), rtol=1e-11, atol=1e-13)


EXAMPLE_NODES = [node for make in EXAMPLES.values() for node in make()]


@pytest.mark.parametrize("node", EXAMPLE_NODES, ids=lambda n: f"{type(n.op).__name__}{n.shape}")
def test_every_op_lowers(node: object) -> None:
    from symad.core.graph import topological
    from symad.ops.basic.sources import Input

    inputs = tuple(k for k in topological([node]) if isinstance(k.op, Input))  # type: ignore[list-item]
    graph = Graph(inputs, (node,))  # type: ignore[arg-type]
    rng = np.random.default_rng(3)
    values = []
    for k in inputs:
        shape = tuple(5 if not isinstance(v, int) else v for v in k.shape)
        value = rng.uniform(0.2, 0.9, size=shape)
        values.append(value if k.shape else float(value))
    if graph.dims or any(not isinstance(v, int) for v in node.shape):  # type: ignore[attr-defined]
        return
    if "Dimension" in {type(k.op).__name__ for k in topological([node])}:  # type: ignore[list-item]
        return  # its symbol is bound by arrays that this example does not have
    assert np.allclose(lower(graph)(*values), graph(*values), rtol=1e-12, equal_nan=True)


def test_mostly_zero_results_are_written_where_they_are() -> None:
    xs = sp.symbols("x0:12")
    f = sp.Add(*[(xs[i + 1] - xs[i] ** 2) ** 2 for i in range(11)])
    graph = symad.hessian(f, xs)
    kernel = lower(graph)
    values = np.linspace(0.5, 1.5, 12)
    assert np.allclose(kernel(*values.tolist()), graph(*values), rtol=1e-13)
    batch = np.stack([values, values + 1])
    assert np.allclose(kernel(*batch.T)[1], graph(*(values + 1)), rtol=1e-13)
    assert "pack_at" in kernel.source
    empty = lower(symad.hessian(sp.Add(*xs), xs))
    assert np.array_equal(empty(*values.tolist()), np.zeros((12, 12)))
    assert np.array_equal(empty(*batch.T), np.zeros((2, 12, 12)))


def vector(name: str, size: object) -> Node:
    return input_node(sp.IndexedBase(name, shape=(size,)), (size,))


@pytest.mark.parametrize("shift", [0.0, 700.0, -5000.0])
def test_softmax_and_log_sum_exp_are_recognised(shift: float) -> None:
    v = vector("v", 4)
    e = apply(sp.exp, v)
    total = sum_all(e)
    quotient, logarithm = Graph((v,), (div(e, total),)), Graph((v,), (apply(sp.log, total),))
    values = np.array([0.3, -1.0, 2.0, 0.5])
    weights = np.exp(values) / np.exp(values).sum()
    assert np.allclose(lower(quotient)(values + shift), weights, rtol=1e-12)
    assert lower(logarithm)(values + shift) == pytest.approx(
        shift + math.log(np.exp(values).sum()), rel=1e-14
    )
    assert "np.exp(v)" not in lower(quotient).source


def test_packed_arrays() -> None:
    kernel = lower(symad.gradient(layer().at({n: 3, d: 2})), packed=True)
    graph = symad.gradient(layer())
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 3)), rng.normal(size=(3, 1)), 0.3
    packed = np.concatenate([np.ravel(v) for v in values])
    expected = np.concatenate([np.ravel(v) for v in graph(*values)])
    assert np.allclose(kernel(packed), expected, rtol=1e-13)
    with pytest.raises(ValueError, match=r"x must have shape \(10,\), not \(9,\)"):
        kernel(packed[:-1])


def test_infinite_constants() -> None:
    scalar = symad.trace(lambda a: (np.where(a > 0, a, -np.inf), np.where(a > 0, np.inf, a)), [()])
    for backend in ("numpy", "c"):
        kernel = lower(scalar, backend=backend)
        assert kernel(-1.0) == (-math.inf, -1.0)
        assert kernel(2.0) == (2.0, math.inf)
    array = lower(symad.trace(lambda a: np.where(a > 0, a, -np.inf), [(2,)]))
    assert array(np.array([1.0, -1.0])).tolist() == [1.0, -math.inf]


@pytest.mark.parametrize("length", [4, 5, 6])
def test_dimensions_that_are_rounded_quotients(length):
    """Every second element of a symbolic number, and twice as many again: ⌈n/2⌉ and 2⌈n/2⌉ places."""
    n = sp.Symbol("n", integer=True, positive=True)

    def doubled(x):
        even = x[::2]
        return np.stack([even, 3 * even], axis=1).reshape(2 * even.shape[0])

    values = np.arange(1.0, length + 1)
    kernel = lower(symad.trace(doubled, [(n,)]))
    np.testing.assert_array_equal(kernel(values), doubled(values))


def test_integer_constants_leave_single_precision_single() -> None:
    """Arrays of integers are numbers among numbers, and stay integers where they are row numbers."""
    weights, rows = np.arange(3), np.array([2, 0, 2])
    graph = symad.trace(lambda v: (weights * v)[rows], inputs=[(3,)])
    kernel = lower(graph, dtype="float32")
    found = kernel(np.ones(3, np.float32))
    assert found.dtype == np.float32
    assert np.array_equal(found, [2, 0, 2])
    assert "np.int64" in kernel.source


def test_boxes_of_boxes():
    """A sum of padded arrays, one of which is padded before: slices of slices, differentiated."""

    def f(x):
        return np.sum(np.sin(x[:2]) ** 2) + np.sum(x[2:][:, 1:] ** 3)

    graph = symad.gradient(symad.trace(f, [(4, 3)]), 0)
    x = np.arange(12.0).reshape(4, 3) / 5
    expected = np.zeros((4, 3))
    expected[:2] = np.sin(2 * x[:2])
    expected[2:, 1:] = 3 * x[2:, 1:] ** 2
    np.testing.assert_allclose(lower(graph)(x), expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_loops_whose_steps_read_no_input(steps) -> None:
    def last(h, W, xs):
        return np.sum(symad.functions.scan(lambda h, x: np.tanh(h @ W), h, xs)[-1] ** 2)

    rng = np.random.default_rng(2)
    h, W, xs = rng.normal(size=(3, 4)), rng.normal(size=(4, 4)), np.zeros((steps, 1))
    graph = symad.value_and_gradient(symad.trace(last, inputs=[(3, 4), (4, 4), (steps, 1)]), wrt=[0, 1])
    value, by_h, by_W = lower(graph)(h, W, xs)

    torch = pytest.importorskip("torch")
    state, weights = (torch.tensor(a, requires_grad=True) for a in (h, W))
    new = state
    for _ in range(steps):
        new = torch.tanh(new @ weights)
    expected = (new**2).sum()
    expected.backward()
    assert np.isclose(value, expected.item(), rtol=1e-12)
    assert np.allclose(by_h, state.grad.numpy(), rtol=1e-11, atol=1e-14)
    assert np.allclose(by_W, weights.grad.numpy(), rtol=1e-11, atol=1e-14)
