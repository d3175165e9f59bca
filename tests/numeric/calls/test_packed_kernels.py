"""packed=True and inputs=[t, [y...]]: SciPy's solvers call kernels without a wrapper."""

import inspect

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp
from scipy.optimize import curve_fit, least_squares, minimize, root

import symad
from symad.errors import LoweringError
from symad.numeric import lower

x, y, a, t = sp.symbols("x y a t", real=True)
VALLEY = (1 - x) ** 2 + a * (y - x**2) ** 2
CIRCLE = [x + y - a, x * y - 2]
BACKENDS = ["numpy", "c", "runs"]


def packed(f, backend, wrt=None):
    return lower(f, backend=backend, packed=True, wrt=wrt)


@pytest.mark.thorough
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_flat(backend):
    point, v = np.array([0.5, 2.0]), np.array([1.0, -1.0])
    at = {x: 0.5, y: 2, a: 3}
    slope = np.array([float(VALLEY.diff(s).subs(at)) for s in (x, y)])
    bend = np.array(sp.hessian(VALLEY, (x, y)).subs(at), dtype=float)
    wrt = [x, y]
    value = packed(VALLEY, backend, wrt)(point, 3.0)
    assert np.ndim(value) == 0 and value == pytest.approx(float(VALLEY.subs(at)))
    assert packed(symad.gradient(VALLEY, wrt), backend)(point, 3.0) == pytest.approx(slope)
    both = packed(symad.value_and_gradient(VALLEY, wrt), backend)(point, 3.0)
    assert both[0] == pytest.approx(value) and both[1] == pytest.approx(slope)
    assert packed(symad.hessian(VALLEY, wrt), backend)(point, 3.0) == pytest.approx(bend)
    sparse = packed(symad.hessian(VALLEY, wrt, sparse=True), backend)
    assert sparse(point, 3.0).toarray() == pytest.approx(bend)
    product = packed(symad.hvp(VALLEY, wrt), backend)
    assert list(inspect.signature(product).parameters) == ["x", "v", "a"]
    assert product(point, v, 3.0) == pytest.approx(bend @ v)
    assert product(x=point, v=v, a=3.0) == pytest.approx(bend @ v)
    matrix = np.array([[1, 1], [2.0, 0.5]])
    for f in (CIRCLE, sp.Matrix(CIRCLE), sp.Array(CIRCLE), {"sum": CIRCLE[0], "product": CIRCLE[1]}):
        assert packed(f, backend, wrt)(point, 3.0) == pytest.approx([-0.5, -1.0])
        assert packed(symad.jacobian(f, wrt), backend)(point, 3.0) == pytest.approx(matrix)
    values, tangents = packed(symad.pushforward(CIRCLE, wrt), backend)(point, v, 3.0)
    assert values == pytest.approx([-0.5, -1.0]) and tangents == pytest.approx(matrix @ v)
    values, cotangents = packed(symad.pullback(CIRCLE, wrt), backend)(point, v, 3.0)
    assert values == pytest.approx([-0.5, -1.0]) and cotangents == pytest.approx(matrix.T @ v)
    joined = packed(symad.join(VALLEY, symad.gradient(VALLEY, wrt), symad.hessian(VALLEY, wrt)), backend)
    assert [np.shape(part) for part in joined(point, 3.0)] == [(), (2,), (2, 2)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_wrt_all_inputs_are_flat(backend):
    flat = packed(VALLEY, backend)
    assert list(inspect.signature(flat).parameters) == ["x"]
    assert flat([3.0, 0.5, 2.0]) == pytest.approx(float(VALLEY.subs({a: 3, x: 0.5, y: 2})))
    with pytest.raises(ValueError, match=r"x must have shape \(3,\), not \(2,\)"):
        flat([1.0, 2.0])
    with pytest.raises(LoweringError, match="packed=True"):
        lower(VALLEY, backend=backend, wrt=x)


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_arrays_are_packed(backend):
    n, d = sp.symbols("n d", integer=True, positive=True)
    rng = np.random.default_rng(0)
    X, z, w, b = rng.normal(size=(7, 3)), rng.normal(size=7), rng.normal(size=3), 0.3
    loss = symad.trace(lambda w, X, z, b: ((X @ w + b - z) ** 2).sum(), [(d,), (n, d), (n,), ()])
    columns = np.column_stack([X, np.ones(7)])
    theta = np.array([*w, b])
    residual = columns @ theta - z
    value, slope = packed(symad.value_and_gradient(loss, ["w", "b"]), backend)(theta, X, z)
    assert value == pytest.approx(residual @ residual) and slope == pytest.approx(2 * columns.T @ residual)
    bend = packed(symad.hessian(loss, ["w", "b"]), backend)(theta, X, z)
    assert bend == pytest.approx(2 * columns.T @ columns)
    product = packed(symad.hvp(loss, ["w", "b"]), backend)
    assert product(theta, theta, X, z) == pytest.approx(2 * columns.T @ columns @ theta)
    with pytest.raises(ValueError, match=r"x must have shape \(4,\), not \(3,\)"):
        product(w, theta, X, z)
    with pytest.raises(ValueError, match="X has shape"):
        product(theta, theta, z, z)
    both = packed(symad.value_and_gradient(loss, ["w", "b"]), backend)
    found = minimize(both, np.zeros(4), (X, z), jac=True)
    assert found.x == pytest.approx(np.linalg.lstsq(columns, z)[0], abs=1e-5)


def test_structures_are_packed():
    def loss(params, x):
        return (np.tanh(params["W"] @ x + params["b"]) ** 2).sum()

    graph = symad.value_and_gradient(loss, "params", inputs=[{"W": (3, 2), "b": (3,)}, (2,)])
    rng = np.random.default_rng(0)
    W, b, point = rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=2)
    value, slope = graph({"W": W, "b": b}, point)
    flat_value, flat_slope = packed(graph, "numpy")(np.concatenate([W.ravel(), b]), point)
    assert flat_value == pytest.approx(value)
    assert flat_slope == pytest.approx(np.concatenate([slope["W"].ravel(), slope["b"]]))


def test_files_are_called_alike(tmp_path):
    kernel = packed(symad.hvp(VALLEY, [x, y]), "numpy")
    kernel.save(tmp_path / "product.py")
    space = {}
    exec((tmp_path / "product.py").read_text(), space)
    arguments = np.array([0.5, 2.0]), np.array([1.0, -1.0]), 3.0
    assert np.array_equal(space["f_hvp"](*arguments), kernel(*arguments))
    assert np.array_equal(space["f_hvp"](a=3.0, x=arguments[0], v=arguments[1]), kernel(*arguments))


# ---- SciPy --------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_minimize(backend):
    wrt = [x, y]
    value, slope = packed(VALLEY, backend, wrt), packed(symad.gradient(VALLEY, wrt), backend)
    both = packed(symad.value_and_gradient(VALLEY, wrt), backend)
    bend, product = packed(symad.hessian(VALLEY, wrt), backend), packed(symad.hvp(VALLEY, wrt), backend)
    for f, options in (
        (both, {"jac": True, "method": "L-BFGS-B"}),
        (value, {"jac": slope, "method": "BFGS"}),
        (both, {"jac": True, "hess": bend, "method": "trust-exact"}),
        (value, {"jac": slope, "hessp": product, "method": "Newton-CG"}),
        (both, {"jac": True, "hessp": product, "method": "trust-krylov"}),
        (value, {"method": "Nelder-Mead"}),
    ):
        found = minimize(f, [-1.2, 1.0], args=(100.0,), **options)
        assert found.success and found.x == pytest.approx([1, 1], abs=1e-3)
    curved = packed(symad.value_and_gradient(VALLEY.subs(a, 100)), backend)
    assert minimize(curved, [-1.2, 1.0], jac=True, method="L-BFGS-B").x == pytest.approx([1, 1], abs=1e-3)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [CIRCLE, sp.Matrix(CIRCLE)], ids=["list", "Matrix"])
def test_root_and_least_squares(backend, f):
    wrt = [x, y]
    values, matrix = packed(f, backend, wrt), packed(symad.jacobian(f, wrt), backend)
    sparse = packed(symad.jacobian(f, wrt, sparse=True), backend)
    both = packed(symad.join(f, symad.jacobian(f, wrt)), backend)
    for found in (
        root(values, [3.0, 0.5], args=(3.0,), jac=matrix),
        root(both, [3.0, 0.5], args=(3.0,), jac=True),
        least_squares(values, [3.0, 0.5], matrix, args=(3.0,)),
        least_squares(values, [3.0, 0.5], sparse, args=(3.0,)),
    ):
        assert found.success and found.x == pytest.approx([2, 1])


def test_curve_fit_reads_the_signature():
    model = lower(a * sp.exp(-y * t), inputs=[t, a, y])
    times = np.linspace(0, 2, 30)
    found, _ = curve_fit(model, times, 3 * np.exp(-0.7 * times))
    assert found == pytest.approx([3, 0.7])


Y = sp.symbols("y1:4", real=True)
ROBERTSON = sp.Matrix(
    [
        -Y[0] / 25 + 10**4 * Y[1] * Y[2],
        Y[0] / 25 - 10**4 * Y[1] * Y[2] - 3 * 10**7 * Y[1] ** 2,
        3 * 10**7 * Y[1] ** 2,
    ]
)


def by_hand(time, y):
    """Robertson's reactions."""
    first, second, third = 0.04 * y[0], 3e7 * y[1] ** 2, 1e4 * y[1] * y[2]
    return [third - first, first - third - second, second]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_solve_ivp(backend, method, sparse):
    inputs = [t, list(Y)]
    field = lower(ROBERTSON, backend=backend, inputs=inputs)
    matrix = lower(symad.jacobian(ROBERTSON, list(Y), inputs=inputs, sparse=sparse), backend=backend)
    assert field(0.0, [1.0, 0, 0]).shape == (3,)
    found = solve_ivp(field, (0, 40), [1.0, 0, 0], method, jac=matrix, rtol=1e-9, atol=1e-12)
    expected = solve_ivp(by_hand, (0, 40), [1.0, 0, 0], "LSODA", rtol=1e-11, atol=1e-14).y[:, -1]
    assert found.success and found.y[:, -1] == pytest.approx(expected, rel=1e-5)
