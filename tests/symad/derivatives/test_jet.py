"""Taylor mode: 50 digits, JAX's jet, nested pushforwards, loops, solutions, sizes, lowered forms, proofs."""

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions as F
from symad.core.graph import Graph, TupleOf
from symad.errors import DerivativeError
from symad.numeric import lower
from symad.transforms.tangents import dense, push

x, y = sp.symbols("x y", real=True)
ORDER = 10

SCALARS = {
    "exp": sp.exp(x), "sin": sp.sin(x), "tanh": sp.tanh(x), "log": sp.log(x), "power": x**7,
    "third roots": x ** sp.Rational(5, 3), "root": sp.sqrt(1 + x**2), "quotient": sp.sin(x) / (1 + x**2),
    "general power": x**x, "erf": sp.erf(x), "gamma": sp.gamma(x), "atan": sp.atan(x), "asin": sp.asin(x / 2),
    "composition": sp.exp(sp.sin(x) * sp.tanh(x)) / (1 + x**2), "sigmoid": 1 / (1 + sp.exp(-3 * x)),
    "branches": sp.Piecewise((sp.sin(x), x > 0), (sp.log(x), True)), "abs": sp.Abs(x) * x**2,
    "cosh": sp.cosh(x) * sp.cos(x), "Lambert": sp.LambertW(x),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("name", SCALARS)
def test_fifty_digits(name):
    """mpmath.taylor differentiates numerically in high precision."""
    graph = symad.jet(SCALARS[name], ORDER)
    function = sp.lambdify(x, SCALARS[name], "mpmath")
    with mpmath.workdps(60):
        at = mpmath.mpf("0.7")
        expected = [c * mpmath.factorial(k) for k, c in enumerate(mpmath.taylor(function, at, ORDER))]
        exact = graph(at, mpmath.mpf(1))
        for found, wanted in zip(exact, expected, strict=True):
            assert abs(found - wanted) <= abs(wanted) * mpmath.mpf(10) ** -25 + mpmath.mpf(10) ** -20
    for f in (graph, lower(graph), lower(graph, backend="c"), lower(graph, style="plain")):
        found = np.array(f(0.7, 1.0), dtype=float)
        np.testing.assert_allclose(found, np.array(expected, dtype=float), rtol=1e-11, atol=1e-11)
    assert len(graph.nodes) < 1000


def nested(graph, order):
    """The definition: one pushforward on another, always along the same direction."""
    dots = symad.jet(graph, 1).input_nodes[len(graph.input_nodes) :]
    along = dict(zip(graph.input_nodes, dots, strict=True))
    made = list(graph.output_nodes)
    current = made
    for _ in range(order):
        current = [dense(t, y) for t, y in zip(push(current, along), graph.output_nodes, strict=True)]
        made = made + current
    return Graph((*graph.input_nodes, *dots), tuple(made), TupleOf((None,) * len(made)))


def directions(graph, seed=0):
    g = np.random.default_rng(seed)
    return [g.uniform(-1, 1, node.shape)[()] for node in graph.input_nodes]


def agree(graph, order, values, dots, rtol=1e-10, atol=1e-11):
    """With the nested pushforwards, evaluated and lowered."""
    fast, slow = symad.jet(graph, order), nested(graph, order)
    expected = slow(*values, *dots)
    found = fast.with_outputs(fast.output_nodes, slow.structure, "flat")(*values, *dots)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)
    return fast


@pytest.mark.thorough
def test_jax():
    """A network of two layers, order 5, with JAX's own Taylor mode."""
    jax = pytest.importorskip("jax")
    from jax.experimental.jet import jet as jax_jet

    jax.config.update("jax_enable_x64", True)
    g = np.random.default_rng(0)
    W, U, X, V = g.normal(size=(6, 4)), g.normal(size=(1, 6)), g.normal(size=4), g.normal(size=4)

    def network(lib):
        return lambda v: lib.sum(U @ lib.tanh(W @ v) * lib.exp(-lib.sum(v * v))) / (1 + lib.sum(v**2))

    zero = jax.numpy.zeros(4)
    value, series = jax_jet(network(jax.numpy), (X,), ((V, *[zero] * 4),))
    graph = symad.jet(symad.trace(network(np), [(4,)]), 5)
    for f in (graph, lower(graph), lower(graph, backend="c")):
        np.testing.assert_allclose(f(X, V), [value, *series], rtol=1e-10)


def test_a_loop_stays_a_loop():
    """A tanh recurrence of 50 steps: derivatives of order 6 by one more scan, against nested pushforwards."""

    def run(W, h, xs):
        return F.scan(lambda c, v: np.tanh(W @ c + v), h, xs)

    graph = symad.trace(run, [(2, 2), (2,), (50, 2)])
    g = np.random.default_rng(0)
    values = [0.6 * g.normal(size=(2, 2)), g.normal(size=2), g.normal(size=(50, 2))]
    dots = [0.1 * g.normal(size=v.shape) for v in values]
    fast = agree(graph, 3, values, dots)
    assert len(fast.nodes) < 60
    np.testing.assert_allclose(lower(fast)(*values, *dots), fast(*values, *dots), rtol=1e-12)


def test_a_loop_in_a_loop_and_a_scan_around_values():
    def run(a, xs, ys):
        def outer(c, v):
            k = np.sin(c) * v * a
            return F.scan(lambda h, w: np.tanh(h * k + w * np.cos(k)), c, ys)[-1]

        return F.scan(outer, a, xs)[-1]

    graph = symad.trace(run, [(), (3,), (2,)])
    g = np.random.default_rng(1)
    values = [0.3, g.normal(size=3), g.normal(size=2)]
    agree(graph, 3, values, [1.0, g.normal(size=3), g.normal(size=2)])


def test_implicit_solutions_against_the_closed_form():
    """x³ = a: all derivatives of a^{1/3} by the residual alone."""
    a = sp.Symbol("a", positive=True)
    solution = symad.implicit(x**3 - a, x)
    found = symad.jet(solution, 6, wrt=[a])(2.0, 1.3, 1.0)
    expected = [float(sp.cbrt(a).diff(a, k).subs(a, 2)) for k in range(7)]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize(
    "f",
    [
        lambda A, b: np.linalg.solve(A, b),
        lambda A, b: np.linalg.inv(A) @ b,
        lambda A, b: np.linalg.slogdet(A)[1] * b,
        lambda A, b: np.linalg.cholesky(A @ A.T) @ b,
        lambda A, b: F.softmax(A @ b) * F.logsumexp(A),
        lambda A, b: np.einsum("ij,jk,k->i", A, A, b),
    ],
)
def test_linear_algebra(f):
    graph = symad.trace(f, [(3, 3), (3,)])
    g = np.random.default_rng(2)
    values = [g.normal(size=(3, 3)) + 3 * np.eye(3), g.normal(size=3)]
    agree(graph, 4, values, [g.normal(size=(3, 3)), g.normal(size=3)])


@pytest.mark.thorough
def test_the_number_of_nodes_grows_with_the_square_of_the_order():
    """Where nesting has thousands of nodes at order 8, a series has hundreds at order 10."""
    W, U, v = (sp.IndexedBase(n, shape=s) for n, s in (("W", (4, 3)), ("U", (4,)), ("v", (3,))))
    graph = symad.trace(lambda W, U, v: (U @ np.tanh(W @ v)) ** 2 / (1 + v @ v), [W, U, v])
    counts = [len(symad.jet(graph, k).nodes) for k in (5, 10, 20)]
    assert counts[1] < 2000
    assert counts[2] < 5 * counts[1]
    assert len(nested(graph, 6).nodes) > 2 * counts[1]


def test_certificates():
    """The series is the nested pushforward, entry by entry."""
    f = sp.sin(x * y) * sp.exp(x) / (1 + y**2)
    graph = symad.trace(f)
    fast, slow = symad.jet(graph, 4), nested(graph, 4)
    for k in range(5):
        one = Graph(fast.input_nodes, (fast.output_nodes[k],))
        other = Graph(slow.input_nodes, (slow.output_nodes[k],))
        assert symad.equal(one, other).status in ("proved", "tested")


def test_structures_names_and_errors():
    graph = symad.jet(lambda p: {"a": p["u"] * p["v"], "b": p["u"] ** 3}, 2, inputs=[{"u": (), "v": ()}])
    made = graph({"u": 2.0, "v": 3.0}, {"u": 1.0, "v": 0.5})
    assert [m["a"] for m in made] == [6.0, 4.0, 1.0]
    assert [m["b"] for m in made] == [8.0, 12.0, 12.0]
    assert symad.jet(x**2, 0)(3.0, 1.0) == (9.0,)
    partial = symad.jet(x * y**2, 2, wrt=[y])
    assert partial(2.0, 3.0, 1.0) == (18.0, 12.0, 4.0)
    for order in (-1, 1.5, True, "2"):
        with pytest.raises(DerivativeError, match="order"):
            symad.jet(x, order)


@pytest.mark.parametrize(
    "f",
    [sp.besselj(0, x), sp.besselk(sp.Rational(1, 3), x), sp.exp(sp.sin(x) * sp.tanh(x)) / (1 + x**2), x**x],
)
def test_order_10_has_at_most_2000_nodes(f):
    assert len(symad.jet(f, 10).nodes) <= 2000


@pytest.mark.thorough
def test_forward_laplacian_of_a_network():
    """Σ_i ∂²f/∂x_i² by second-order series in all directions, against the trace of torch's Hessian."""
    torch = pytest.importorskip("torch")
    g = np.random.default_rng(0)
    W, u, v = g.normal(size=(8, 5)), g.normal(size=8), g.normal(size=5)
    graph = symad.trace(lambda W, u, v: u @ np.tanh(W @ v), [W.shape, u.shape, v.shape])
    series = symad.vmap(symad.jet(graph, 2, wrt=[2]), (None, None, None, 0))
    Wt, ut = torch.tensor(W), torch.tensor(u)
    H = torch.autograd.functional.hessian(lambda v: ut @ torch.tanh(Wt @ v), torch.tensor(v))
    for f in (series, lower(series), lower(series, backend="c")):
        assert abs(np.sum(f(W, u, v, np.eye(5))[2]) - H.trace().item()) < 1e-12


def test_forward_laplacian():
    """Σ_i ∂²f/∂x_i² by one batch of second-order series, against SymPy."""
    v = sp.symbols("v:3", real=True)
    f = sp.exp(-v[0] * v[1]) * sp.sin(v[2]) + sp.log(1 + v[0] ** 2 + v[2] ** 2)
    graph = symad.vmap(symad.jet(f, 2, inputs=[list(v)]), (None, 0))
    point = np.array([0.3, -0.7, 1.1])
    exact = sum(f.diff(s, 2) for s in v).subs(dict(zip(v, point, strict=True)))
    assert abs(graph(point, np.eye(3))[2].sum() - float(exact)) < 1e-13
