"""Functions of a norm or an absolute value at 0: where F'(0) = 0, the Hessian is F''(0) times identity."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.derivatives.hessian import MODES
from symad.numeric import lower

t = sp.Symbol("t", real=True)
x, y = sp.symbols("x y", real=True)
s3, s5, s7 = map(sp.sqrt, (3, 5, 7))

FUNCTIONS = {
    "square": t**2,
    "fourth power": t**4,
    "cube": t**3,
    "cosh": sp.cosh(t),
    "cos": sp.cos(2 * t),
    "product of sines": t * sp.sin(t),
    "Gauss": sp.exp(-(t**2) / 2),
    "log cosh": sp.log(sp.cosh(t)),
    "sech": sp.sech(t),
    "Cauchy": sp.log(1 + t**2),
    "rational quadratic": (1 + t**2 / 3) ** sp.Rational(-3, 2),
    "pseudo-Huber": 4 * (sp.sqrt(1 + t**2 / 4) - 1),
    "Matérn 3/2": (1 + s3 * t) * sp.exp(-s3 * t),
    "Matérn 5/2": (1 + s5 * t + 5 * t**2 / 3) * sp.exp(-s5 * t),
    "Matérn 7/2": (1 + s7 * t + 14 * t**2 / 5 + 7 * s7 * t**3 / 15) * sp.exp(-s7 * t),
    "Huber": sp.Piecewise((t**2 / 2, t < 1), (t - sp.Rational(1, 2), True)),
    "Wendland": sp.Piecewise(((1 - t) ** 4 * (4 * t + 1), t < 1), (0, True)),
    "smooth step": t**2 * (3 - 2 * t),
    "power 5/2": t ** sp.Rational(5, 2),
}
"""Functions F with F'(0) = 0; the right side is SymPy's derivative of F."""


def curvature(name: str) -> float:
    f = FUNCTIONS[name]
    inner = f.args[0].expr if isinstance(f, sp.Piecewise) else f
    assert sp.simplify(inner.diff(t).subs(t, 0)) == 0
    return float(inner.diff(t, 2).subs(t, 0))


def hessians(f, point):
    return [symad.hessian(f, mode=mode)(*point) for mode in MODES]


def on_arrays(name, norm, size):
    """Σ F(norm(u)) for an array of points."""
    f = sp.lambdify(t, FUNCTIONS[name], "numpy", cse=False)
    return symad.trace(lambda u: np.sum(f(norm(u))), [(size,)])


NORMS = {
    "np.linalg.norm": np.linalg.norm,
    "a root of squares": lambda u: np.sqrt(np.sum(u**2)),
    "a root of a product": lambda u: np.sqrt(u @ u),
    "np.abs": np.abs,
    "np.hypot": lambda u: np.hypot(u[0], u[1]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_two_numbers(name: str) -> None:
    f = FUNCTIONS[name].subs(t, sp.sqrt(x**2 + y**2))
    assert np.array_equal(symad.gradient(f, [x, y])(0.0, 0.0), [0, 0])
    for found in hessians(symad.trace(f, [x, y]), (0.0, 0.0)):
        np.testing.assert_allclose(found, curvature(name) * np.eye(2), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_an_absolute_value(name: str) -> None:
    f = FUNCTIONS[name].subs(t, sp.Abs(x - y)) + x
    for found in hessians(symad.trace(f, [x, y]), (0.5, 0.5)):
        np.testing.assert_allclose(
            found, curvature(name) * np.array([[1, -1], [-1, 1]]), rtol=1e-14, atol=1e-15
        )


SPELLINGS = {
    "root of a square": (lambda u: np.sqrt(np.sum(u**2) ** 2), 2),
    "roots of fourth powers": (lambda u: np.sum(np.sqrt(u**4)), 2),
    "root of a product": (lambda u: np.sqrt((u @ u) * (u @ u)), 2),
    "size of a square": (lambda u: np.abs(np.sum(u**2)), 2),
    "size of a norm": (lambda u: np.abs(np.linalg.norm(u)) ** 2, 2),
    "power of a power of a size": (lambda u: np.sum((np.abs(u) ** 5) ** 0.8), 0),
    "power of a power": (lambda u: np.sum(u**2) ** 1.25, 0),
    "root of a fifth power": (lambda u: np.sqrt(np.linalg.norm(u) ** 5), 0),
    "norm of order 4": (lambda u: np.sum((np.sum(u**4) ** 0.25) ** 4), 0),
    "hypot of a norm": (lambda u: np.hypot(u[0], np.hypot(u[1], 0.0 * u[0])) ** 2, 2),
    "hypot of roots": (lambda u: np.cos(np.hypot(np.sqrt(u[0] ** 2), np.abs(u[1]))), -1),
    "power of 3": (lambda u: (np.sum(u**2) ** 3) ** 0.5, 0),
}
"""Functions of two numbers, and their second derivatives at 0."""


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name: str) -> None:
    f, right = SPELLINGS[name]
    f = symad.trace(f, [(2,)])
    for mode in ("reverse", "forward"):
        assert not np.any(symad.gradient(f, mode=mode)(np.zeros(2)))
    for found in hessians(f, (np.zeros(2),)):
        np.testing.assert_allclose(found, right * np.eye(2), rtol=1e-14)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("p", [1.25, 1.5, 1.9])
def test_powers_with_one_derivative(p: float, mode: str) -> None:
    for norm in NORMS.values():
        f = symad.trace(lambda u, norm=norm: np.sum(norm(u) ** p), [(2,)])
        assert not np.any(symad.gradient(f, mode=mode)(np.zeros(2)))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["square", "cosh", "Gauss", "Matérn 3/2", "Huber"])
def test_of_arrays(name: str, norm: str) -> None:
    f = on_arrays(name, NORMS[norm], 2)
    (gradient,) = np.atleast_2d(symad.gradient(f)(np.zeros(2)))
    assert np.array_equal(gradient, [0, 0])
    for found in hessians(f, (np.zeros(2),)):
        np.testing.assert_allclose(found, curvature(name) * np.eye(2), rtol=1e-14, atol=1e-15)


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["numpy", "plain", "c"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_code(name: str, backend: str) -> None:
    options = {"style": "plain"} if backend == "plain" else {"backend": backend}
    for norm in NORMS.values():
        found = lower(symad.hessian(on_arrays(name, norm, 2)), **options)(np.zeros(2))
        np.testing.assert_allclose(found, curvature(name) * np.eye(2), rtol=1e-14, atol=1e-15)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["Gauss", "Matérn 5/2"])
def test_of_all_distances(name: str) -> None:
    """A Gram matrix K_ij = F(‖x_i − x_j‖), whose diagonal is at 0: against differences of 50 digits."""
    f = sp.lambdify(t, FUNCTIONS[name], "numpy")
    weights = np.array([[1.0, 2.0], [2.0, -1.0]])

    def total(X):
        return np.sum(weights * f(np.sqrt(np.sum((X[:, None] - X[None]) ** 2, axis=-1))))

    a, b, c, d = z = sp.symbols("a:d", real=True)
    right = 4 * FUNCTIONS[name].subs(
        t, sp.sqrt((a - c) ** 2 + (b - d) ** 2)
    )  # F(0) on the diagonal is constant
    at = [0.25, -0.5, 1.0, 0.75]
    expected = np.array([[float(right.diff(u, v).subs(dict(zip(z, at, strict=True)))) for v in z] for u in z])
    for found in hessians(symad.trace(total, [(2, 2)]), (np.reshape(at, (2, 2)),)):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["Matérn 3/2", "Matérn 5/2"])
def test_third_derivatives_of_all_distances(name: str) -> None:
    """The diagonal is at 0, where that of F = Matérn 3/2 has no third derivative, but is constant."""
    f = sp.lambdify(t, FUNCTIONS[name], "numpy")
    graph = symad.trace(lambda X: np.sum(f(np.sqrt(np.sum((X[:, None] - X[None]) ** 2, axis=-1)))), [(2, 1)])
    third = FUNCTIONS[name].diff(t, 3).subs(t, sp.Rational(3, 4))
    for mode in MODES:
        found = symad.jacobian(symad.hessian(graph, mode=mode))(np.array([[1.0], [0.25]]))
        signs = np.array([1, -1])
        right = 2 * float(third) * np.einsum("i,j,k->ijk", signs, signs, signs)
        np.testing.assert_allclose(np.reshape(found, (2, 2, 2)), right, rtol=1e-12)


def test_a_norm_beside_a_size_elsewhere() -> None:
    """Slopes that do not exist at 0 are not multiplied by tangents that are 0 at other points."""
    f = sp.exp(-sp.sqrt(x**2 + y**2)) * sp.Abs(x)
    at = {x: sp.Rational(1, 4), y: sp.Rational(-1, 2)}
    plain = f.subs(sp.Abs(x), x)
    right = [[float(plain.diff(u, v).subs(at)) for v in (x, y)] for u in (x, y)]
    for found in hessians(symad.trace(f, [x, y]), (0.25, -0.5)):
        np.testing.assert_allclose(found, right, rtol=1e-13)


@pytest.mark.parametrize("name", ["square", "Matérn 3/2", "cosh"])
def test_with_a_length(name: str) -> None:
    """F(r/ℓ) by all of x, y and ℓ, also in one direction of them."""
    length = sp.Symbol("l", positive=True)
    f = symad.trace(FUNCTIONS[name].subs(t, sp.sqrt(x**2 + y**2) / length), [x, y, length])
    right = np.diag([curvature(name) / 4, curvature(name) / 4, 0])
    for found in hessians(f, (0.0, 0.0, 2.0)):
        np.testing.assert_allclose(found, right, rtol=1e-14, atol=1e-15)
    for mode in MODES[:3]:
        found = symad.hvp(f, mode=mode)(0.0, 0.0, 2.0, 1.0, 2.0, 3.0)
        np.testing.assert_allclose(found, right @ [1, 2, 3], rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_elsewhere(name: str) -> None:
    """At other points nothing has changed."""
    f = FUNCTIONS[name].subs(t, sp.sqrt(x**2 + y**2))
    at = {x: sp.Rational(1, 4), y: sp.Rational(-1, 2)}
    right = [[float(f.diff(u, v).subs(at)) for v in (x, y)] for u in (x, y)]
    for found in hessians(symad.trace(f, [x, y]), (0.25, -0.5)):
        np.testing.assert_allclose(found, right, rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_cones_have_no_second_derivative(mode: str) -> None:
    """Where F'(0) is not 0 the formula is differentiated, as before."""
    r = sp.sqrt(x**2 + y**2)
    for f in (r, sp.exp(-r), sp.log(1 + r), r / (1 + r), (1 + 2 * r) * sp.exp(-r), r * sp.cosh(r)):
        assert np.isnan(symad.hessian(f, mode=mode)(0.0, 0.0)).all()
    for f in (sp.Abs(x), sp.exp(-sp.Abs(x))):
        assert symad.hessian(f, mode=mode)(0.0) == 0


def test_gradients_have_no_more_nodes() -> None:
    """A limit is only needed by the second derivative."""
    r = sp.sqrt(x**2 + y**2)
    assert not any(n.op.branches and n.shape for n in symad.gradient(sp.cosh(r)).nodes)
    assert len(symad.gradient(sp.cosh(r), [x, y]).nodes) <= 21


# ---- norms of other orders ---------------------------------------------------------------------------------


ORDERS = (2.5, 3, 3.5, 4, 5, 6)
POWERS = (1, 1.5, 2, 2.5, 3, 4)
POINTS = ([1.0, 0.0, 0.0], [0.5, -2.0, 0.0], [0.25, 0.5, -1.0], [0.0, 0.0, 0.0])


def closed_form(u: np.ndarray, order: float, k: float) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian of N^k for N = (Σ|u|^p)^(1/p), p > 2; at 0 the Hessian exists for k > 2 only."""
    norm = np.sum(np.abs(u) ** order) ** (1 / order)
    if norm == 0:
        return np.zeros(3), np.full((3, 3), 0.0 if k > 2 else np.nan)
    a = np.sign(u) * (np.abs(u) / norm) ** (order - 1)
    curved = (order - 1) * (np.diag((np.abs(u) / norm) ** (order - 2)) - np.outer(a, a)) / norm
    outer = k * (k - 1) * norm ** (k - 2) * np.outer(a, a)
    return k * norm ** (k - 1) * a, outer + k * norm ** (k - 1) * curved


def check_norms(order: float, k: float) -> None:
    f = symad.trace(lambda u: np.linalg.norm(u, order) ** k, [(3,)])
    for point in map(np.array, POINTS):
        slope, curved = closed_form(point, order, k)
        for mode in ("reverse", "forward"):
            np.testing.assert_allclose(symad.gradient(f, mode=mode)(point), slope, rtol=1e-12, atol=1e-14)
        for found in hessians(f, (point,)):
            if np.isnan(curved).any():
                assert np.isnan(found).all()
            else:
                np.testing.assert_allclose(found, curved, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("order", "k"), [(3, 1), (3, 3), (4, 1), (2.5, 2), (4, 3)])
def test_norms_of_other_orders(order: float, k: float) -> None:
    """At points with zeros among their elements, and at 0."""
    check_norms(order, k)


@pytest.mark.thorough
@pytest.mark.parametrize("k", POWERS)
@pytest.mark.parametrize("order", ORDERS)
def test_norms_of_all_orders(order: float, k: float) -> None:
    check_norms(order, k)


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_powers_of_sums_of_powers_at_zero(degree: int) -> None:
    """(Σ|u|^d)^p has a slope at 0 for dp > 1, and a second one for dp > 2."""
    for total in (1.2, 1.9, 2.4, 3.0, 3.5):
        f = symad.trace(lambda u, p=total / degree: np.sum(np.abs(u) ** degree) ** p, [(2,)])
        assert not np.any(symad.gradient(f)(np.zeros(2)))
        for found in hessians(f, (np.zeros(2),)):
            assert np.isnan(found).all() if total < 2 else not np.any(found)


FOURTH = ["Matérn 7/2", "cosh", "cos", "fourth power", "square", "log cosh", "sech", "product of sines"]


@pytest.mark.parametrize(
    "name", ["Matérn 5/2", *[pytest.param(n, marks=pytest.mark.thorough) for n in FOURTH]]
)
def test_fourth_derivatives(name: str) -> None:
    """F⁗(0)/3 times the symmetric tensor of identities, where F has no third derivative at 0."""
    f = symad.hessian(on_arrays(name, np.linalg.norm, 2))
    found = symad.jacobian(symad.jacobian(f))(np.zeros(2)).reshape(2, 2, 2, 2)
    fourth, one = float(sp.diff(FUNCTIONS[name], t, 4).subs(t, 0)), np.eye(2)
    right = sum(np.einsum(f"ij,kl->{order}", one, one) for order in ("ijkl", "ikjl", "iklj"))
    np.testing.assert_allclose(found, fourth / 3 * right, rtol=1e-13, atol=1e-13)


def test_a_cone_beside_a_square_keeps_the_derivatives_of_the_square() -> None:
    """|x| + exp(−|x|) x²/2 has no derivative at 0: of |x| it has 0."""
    for f in (sp.Abs(x) + x**2 / 2, sp.Abs(x) + sp.exp(-sp.Abs(x)) * x**2 / 2):
        assert symad.gradient(f, x)(0.0) == 0
        for found in hessians(symad.trace(f, [x]), (0.0,)):
            assert found == 1


@pytest.mark.parametrize("at", [2e-200, -1e200, 3.0, 0.0])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, -1), (3, 4), (2, 0.5)])
def test_hypot_of_multiples_of_one_number(a: float, b: float, at: float) -> None:
    """A multiple of |u|: the terms of its second derivative would be 0 but for rounding."""
    f = symad.trace(lambda u: np.hypot(a * u, b * u), [()])
    assert symad.gradient(f)(at) == pytest.approx(np.hypot(a, b) * np.sign(at), rel=1e-15)
    if isinstance(b, int):  # squares of floats are rounded, and such factors stay
        assert not np.any(hessians(f, (at,)))


@pytest.mark.parametrize("at", [1e-3, 1e-9, 1e-100, 1e-170])
def test_roots_with_a_common_power(at: float) -> None:
    """√(x⁴ + x²) = |x| √(1 + x²), whose second derivative is 3x + O(x³)."""
    for f in (sp.sqrt(x**4 + x**2), sp.sqrt(sp.Add(x**4, x**2, 0 * y))):
        right = at * (2 * at**2 + 3) / (1 + at**2) ** 1.5
        for found in hessians(symad.trace(f, [x]), (at,)):
            np.testing.assert_allclose(found, right, rtol=1e-14)
        assert symad.gradient(f, x)(at) == pytest.approx((1 + 2 * at**2) / np.sqrt(1 + at**2), rel=1e-14)
    nested = symad.trace(lambda u: np.sqrt(2 * u**4 - 3 * u**2 * u**2 + u * u + 5 * u**3), [()])
    for found in hessians(nested, (1e-9,)):  # (u √(1 + 5u − u²))'' = 5 − 87 u/4 + O(u²)
        np.testing.assert_allclose(found, 5 - 87e-9 / 4, rtol=1e-15)


@pytest.mark.parametrize(
    ("function", "right"),
    [
        (lambda u, r: u[0] * r**4, [0, 0, 0, 0, 120, 0]),
        (lambda u, r: u[0] ** 2 * r**4, [0, 0, 0, 0, 0, 720]),
    ],
)
def test_six_derivatives_by_way_of_a_norm(function, right) -> None:
    """k! times the coefficients of the Taylor series at 0; the first ones that are not 0 may be the sixth."""
    f, found = symad.trace(lambda u: function(u, np.linalg.norm(u)), [(1,)]), []
    for _ in right:
        slope = symad.gradient(f)
        found.append(float(slope(np.zeros(1))[0]))
        f = symad.trace(lambda u, slope=slope: slope(u)[0], [(1,)])
    assert found == right


def test_a_term_may_have_the_slopes_of_two_radii():
    """Over an axis of one element a running sum is its argument: b exp(−|a|) + exp(−|b| a²)."""

    def f(a, b):
        return np.sum((np.exp(-np.abs(a)) * b + np.exp(-np.abs(b * np.cumsum(a, 1) * a))) ** 2)

    graph = symad.trace(f, [(1, 1), (1, 1)])
    expected = (sp.exp(-sp.Abs(x)) * y + sp.exp(-sp.Abs(y * x**2))) ** 2
    for mode in MODES:
        hessian = lower(symad.hessian(graph, mode=mode))
        for point in [(0.5, -0.3), (-1.25, 0.75), (0.25, 2.0)]:
            at = dict(zip((x, y), point, strict=True))
            right = [[float(expected.diff(p, q).doit().subs(at)) for p in (x, y)] for q in (x, y)]
            found = np.array(hessian(a=np.full((1, 1), point[0]), b=np.full((1, 1), point[1])))
            np.testing.assert_allclose(found, right, rtol=1e-12)
