"""Graphs as JAX functions: values and derivatives are symad's and JAX's own, under every transformation."""

import pickle

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.functions import scan

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

x, y = sp.symbols("x y", real=True)
n = sp.Symbol("n", integer=True, positive=True)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def layer(W, b, X):
    return jnp.tanh(X @ W + b) if isinstance(W, jax.Array) else np.tanh(X @ W + b)


def recurrence(W, U, xs):
    return np.sum(scan(lambda h, z: np.tanh(W @ h + U @ z), np.zeros(3), xs) ** 2)


def recurrence_in_jax(W, U, xs):
    def step(h, z):
        h = jnp.tanh(W @ h + U @ z)
        return h, h

    return jnp.sum(jax.lax.scan(step, jnp.zeros(3), xs)[1] ** 2)


@pytest.mark.thorough
@pytest.mark.parametrize("rule", ["jvp", "vjp"])
def test_a_scalar_function(rule):
    f = symad.jax.as_function(sp.sin(x * y) + sp.exp(x), rule=rule)
    expected = lambda x, y: jnp.sin(x * y) + jnp.exp(x)  # noqa: E731
    point = 0.3, 1.7
    assert abs(f(*point) - expected(*point)) < 1e-15
    slopes = jax.jit(jax.grad(f, (0, 1)))(*point)
    for wanted, found in zip(jax.grad(expected, (0, 1))(*point), slopes, strict=True):
        assert abs(wanted - found) < 1e-14
    third = jax.grad(jax.grad(jax.grad(f)))(*point)
    assert abs(third - jax.grad(jax.grad(jax.grad(expected)))(*point)) < 1e-12


@pytest.mark.thorough
@pytest.mark.parametrize("rule", ["jvp", "vjp"])
def test_a_recurrence_is_a_scan_and_its_gradient_is_symads(rule):
    graph = symad.trace(recurrence, [(3, 3), (3, 2), (n, 2)])
    f = symad.jax.as_function(graph, rule=rule)
    arrays = array(3, 3), array(3, 2, seed=1), array(5, 2, seed=2)
    assert "lax.scan" in f.source("float64")
    found = jax.jit(jax.grad(f, (0, 1, 2)))(*arrays)
    for one, own, other in zip(
        found, symad.gradient(graph)(*arrays), jax.grad(recurrence_in_jax, (0, 1, 2))(*arrays), strict=True
    ):
        np.testing.assert_allclose(one, own, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


SLOW = pytest.mark.slow


@pytest.mark.thorough
@pytest.mark.parametrize(
    "hessian",
    ["jacfwd of jacfwd", *(pytest.param(m, marks=SLOW) for m in ("jacfwd of jacrev", "jacrev of jacrev"))],
)
def test_hessians(hessian):
    graph = symad.trace(recurrence, [(3, 3), (3, 2), (4, 2)])
    f = symad.jax.as_function(graph)
    outer, inner = ({"fwd": jax.jacfwd, "rev": jax.jacrev}[w[-3:]] for w in hessian.split(" of "))
    arrays = array(3, 3), array(3, 2, seed=1), array(4, 2, seed=2)
    found = outer(inner(f))(*arrays)
    np.testing.assert_allclose(found, jax.hessian(recurrence_in_jax)(*arrays), rtol=1e-10, atol=1e-11)


@pytest.mark.slow
def test_reverse_over_reverse_by_the_pullback():
    graph = symad.trace(recurrence, [(3, 3), (3, 2), (4, 2)])
    f = symad.jax.as_function(graph, rule="vjp")
    arrays = array(3, 3), array(3, 2, seed=1), array(4, 2, seed=2)
    np.testing.assert_allclose(
        jax.jacrev(jax.jacrev(f))(*arrays), jax.hessian(recurrence_in_jax)(*arrays), rtol=1e-10, atol=1e-11
    )
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jacfwd(f)(*arrays)


@pytest.mark.thorough
def test_vmap_and_broadcasting():
    f = symad.jax.as_function(layer, [(3, 2), (2,), (4, 3)])
    W, b, X = jnp.asarray(array(3, 2)), jnp.asarray(array(2)), jnp.asarray(array(6, 4, 3))
    np.testing.assert_allclose(jax.vmap(f, (None, None, 0))(W, b, X), layer(W, b, X), rtol=1e-14)
    g = symad.jax.as_function(sp.sin(x) * y)
    points, others = array(4, 1), array(3, seed=1)
    np.testing.assert_allclose(g(points, others), np.sin(points) * others)
    bar = jax.grad(lambda p, q: g(p, q).sum(), 1)(points, others)
    np.testing.assert_allclose(bar, np.broadcast_to(np.sin(points), (4, 3)).sum(0))


def test_pytrees():
    def f(params, z):
        return {"loss": np.sum((params["W"] @ z + params["b"]) ** 2), "z": z * 2.0}

    made = symad.jax.as_function(f, [{"W": (2, 3), "b": (2,)}, (3,)])
    params, z = {"W": array(2, 3), "b": array(2, seed=1)}, array(3, seed=2)
    bars = jax.jit(jax.grad(lambda p: made(p, z)["loss"]))(params)
    residual = 2 * (params["W"] @ z + params["b"])
    np.testing.assert_allclose(bars["W"], np.outer(residual, z), rtol=1e-13)
    np.testing.assert_allclose(bars["b"], residual, rtol=1e-13)


@pytest.mark.thorough
def test_symbolic_sizes_follow_the_arrays():
    f = symad.jax.as_function(layer, [(3, 2), (2,), (n, 3)])
    for count in (1, 7):
        assert f(array(3, 2), array(2), array(count, 3)).shape == (count, 2)
    with pytest.raises(ValueError, match="W must have shape"):
        f(array(3, 3), array(2), array(4, 3))


@pytest.mark.thorough
def test_indices():
    def rows(table, index):
        return functions.lookup(table, index)

    for rule in ("jvp", "vjp"):
        f = symad.jax.as_function(rows, [(5, 2), (3,)], rule=rule)
        table, index = array(5, 2), jnp.array([1, 4, 1])
        np.testing.assert_allclose(f(table, index), table[[1, 4, 1]])
        bar = jax.grad(lambda t, f=f: f(t, jnp.array([1, 4, 1])).sum())(table)
        np.testing.assert_allclose(bar, [[0, 0], [2, 2], [0, 0], [0, 0], [1, 1]])
        assert np.isnan(f(table, jnp.array([1, 5, -1]))[1:]).all()


QUICK = [sp.besselj(1, x), sp.Piecewise((x, x > y), (y**2, x > 0)), x**y, sp.erf(x)]
SPECIAL = [
    sp.gamma(x + 2), sp.loggamma(x), sp.airyai(x), sp.Max(x, y), sp.LambertW(x), sp.sech(x), sp.sinc(x),
    sp.atan2(x, y), sp.Abs(x - y), sp.polygamma(0, x), sp.fresnels(x),
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(
    "expression", QUICK + [pytest.param(e, marks=pytest.mark.slow) for e in SPECIAL], ids=str
)
def test_functions_of_scipy_and_their_derivatives(expression):
    f = symad.jax.as_function(expression, inputs=[x, y])
    graph = symad.trace(expression, inputs=[x, y])
    points = np.array([0.4, 1.3, 2.6]), np.array([0.9, 0.2, 1.1])
    np.testing.assert_allclose(jax.jit(f)(*points), graph(*points), rtol=1e-12)
    found = jax.vmap(jax.grad(f, (0, 1)))(*points)
    for one, own in zip(found, symad.gradient(graph)(*points), strict=True):
        np.testing.assert_allclose(one, own, rtol=1e-11, atol=1e-13)
    second = jax.vmap(jax.grad(jax.grad(f)))(*points)
    np.testing.assert_allclose(second, symad.hessian(graph)(*points)[..., 0, 0], rtol=1e-10, atol=1e-12)


ARRAYS = {
    "solve": (lambda A, b: np.linalg.solve(A + 3 * np.eye(3), b), [(3, 3), (3,)]),
    "log det": (lambda A: np.linalg.slogdet(A @ A.T + np.eye(3))[1], [(3, 3)]),
    "cholesky": (lambda A: np.linalg.cholesky(A @ A.T + np.eye(3)), [(3, 3)]),
    "eigenvalues": (lambda A: np.linalg.eigvalsh(A + A.T), [(3, 3)]),
    "softmax": (lambda A: functions.log_softmax(A, axis=0), [(3, 4)]),
    "norm": (lambda A: (A - A.mean(-1, keepdims=True)) / np.sqrt(A.var(-1, keepdims=True) + 1e-5), [(3, 4)]),
    "sort": (lambda a: np.sort(a)[::-1] * 2, [(5,)]),
    "cumulative": (lambda a: np.cumsum(a)[1:] * np.max(a), [(5,)]),
    "concatenate": (lambda a, b: np.concatenate([a, 2 * b])[1:-1:2], [(5,), (4,)]),
    "where": (lambda a, b: np.where(a > b, a**2, np.abs(b)), [(5,), (5,)]),
    "einsum": (lambda A, B: np.einsum("bij,bjk->bik", A, B), [(2, 3, 4), (2, 4, 3)]),
    "attention": (
        lambda q, k, v: functions.attention(q, k, v, causal=True), [(1, 2, 4, 3)] * 3,
    ),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("case", [pytest.param(c, marks=SLOW) if c == "attention" else c for c in ARRAYS])
def test_arrays(case):
    function, shapes = ARRAYS[case]
    graph = symad.trace(function, shapes)
    arrays = [array(*s, seed=k) for k, s in enumerate(shapes)]
    f = symad.jax.as_function(graph)
    np.testing.assert_allclose(jax.jit(f)(*arrays), graph(*arrays), rtol=1e-11, atol=1e-12)
    weights = array(*graph.output_nodes[0].shape, seed=9)
    own = symad.pullback(graph)(*arrays, weights)[1:]
    for rule in ("jvp", "vjp"):
        g = symad.jax.as_function(graph, rule=rule)
        found = jax.grad(lambda *a, g=g: (g(*a) * weights).sum(), tuple(range(len(arrays))))(*arrays)
        for one, other in zip(found, own, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11)


@pytest.mark.thorough
def test_an_implicit_function():
    F = sp.Matrix([x**3 + y * x - 2])
    graph = symad.implicit(F, [x], [y])
    f = symad.jax.as_function(graph)
    given = [np.full(node.shape, v) for node, v in zip(graph.input_nodes, (1.5, 1.0), strict=True)]
    np.testing.assert_allclose(jax.jit(f)(*given), graph(*given), rtol=1e-13)
    slope = jax.grad(lambda a: f(a, given[1])[0].sum())(given[0])
    root = float(np.ravel(graph(*given))[0])
    np.testing.assert_allclose(np.ravel(slope), [-root / (3 * root**2 + 1.5)], rtol=1e-10)


def test_single_precision():
    f = symad.jax.as_function(layer, [(3, 2), (2,), (4, 3)])
    made = f(*(jnp.asarray(array(*s), jnp.float32) for s in ((3, 2), (2,), (4, 3))))
    assert made.dtype == jnp.float32


def test_bfloat16():
    f = symad.jax.as_function(sp.sin(x) * y)
    made = f(jnp.asarray([0.5, 1.0], jnp.bfloat16), jnp.asarray(2.0, jnp.bfloat16))
    assert made.dtype == jnp.bfloat16
    np.testing.assert_allclose(made.astype(float), 2 * np.sin([0.5, 1.0]), rtol=2.0**-7)


@pytest.mark.thorough
@pytest.mark.parametrize("rule", ["jvp", "vjp"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precisions(dtype, rule):
    """A rounding is 2⁻⁸ or 2⁻¹¹; equations are solved in single precision: JAX has no such routines."""
    unit = 2.0 ** (-8 if dtype == "bfloat16" else -11)

    def loss(W, b, X):
        inverse = np.linalg.inv(X.T @ X / 4 + np.eye(3))
        return np.sum(np.tanh(X @ W + b) ** 2) + np.trace(inverse)

    f = symad.jax.as_function(symad.trace(loss, [(3, 2), (2,), (4, 3)]), rule=rule)
    exact = [array(3, 2), array(2), array(4, 3, seed=1)]
    given = [jnp.asarray(v, dtype) for v in exact]
    value, slope = jax.jit(jax.value_and_grad(f))(*given)
    wanted, right = jax.value_and_grad(f)(*(jnp.asarray(v, jnp.float64) for v in given))
    assert value.dtype == slope.dtype == given[0].dtype
    np.testing.assert_allclose(float(value), float(wanted), rtol=16 * unit)
    np.testing.assert_allclose(slope.astype(float), right, rtol=0, atol=32 * unit * float(abs(right).max()))


def test_functions_are_pickled():
    f = symad.jax.as_function(layer, [(3, 2), (2,), (4, 3)], rule="vjp")
    back = pickle.loads(pickle.dumps(f))
    given = [array(3, 2), array(2), array(4, 3)]
    assert np.array_equal(back(*given), f(*given)) and back.code.rule == "vjp"


def test_what_cannot_be_computed_is_named():
    with pytest.raises(symad.errors.SymadError, match="complex"):
        symad.jax.as_function(x * y)(1j, 2.0)
    with pytest.raises(symad.errors.SymadError, match="missing: y"):
        symad.jax.as_function(x * y)(1.0)
    with pytest.raises(symad.errors.SymadError, match="'jvp', 'vjp'"):
        symad.jax.as_function(x * y, rule="both")
