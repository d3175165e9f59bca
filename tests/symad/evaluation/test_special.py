"""Special functions on arrays against mpmath, with every number of arguments that they allow; functions that
are rewritten; SciPy's functions in traced functions."""

import mpmath
import numpy as np
import pytest
import scipy.special
import sympy as sp
from sympy.codegen import cfunctions, numpy_nodes, scipy_nodes
from sympy.functions.special.elliptic_integrals import elliptic_e, elliptic_f, elliptic_pi

import symad
from symad import functions
from symad.errors import DerivativeError, EvaluationError, TraceError
from symad.facts.functions import float_names
from symad.numbers.function_values import mpmath_function
from symad.numeric import lower
from symad.ops.basic.sources import input_node
from symad.ops.elementwise.apply import apply
from symad.special import elliptic_moment
from symad.sympy_functions.elliptic_moments import elliptic_moment as elliptic_moment_of
from tests.verification.programs.domains import DOMAINS, points

x, y, z, w = sp.symbols("x y z w")

MORE_ARITIES = {
    (sp.beta, 1): ((0.1, 4.0),), (sp.LambertW, 2): ((-0.3, -0.1), (-1, 0)), (sp.zeta, 1): ((1.1, 4.0),),
    (elliptic_e, 1): ((-0.95, 0.95),), (elliptic_pi, 2): ((-0.9, 0.9), (-0.95, 0.95)),
    (elliptic_moment_of, 5): ((0, 1, 2), (0, 1), (0, 1), (-0.9, 0.9), (-0.95, 0.95)),
    (sp.Max, 3): ((-3.0, 3.0),) * 3,
    (sp.Min, 3): ((-3.0, 3.0),) * 3, (sp.Heaviside, 2): ((-3.0, 3.0), (0, 1)),
}  # fmt: skip
"""Ranges of arguments for heads that take several numbers of them."""

ONLY_ONE = {(sp.log, 2), (sp.Heaviside, 1)}
"""SymPy itself writes these with another number of arguments."""

CASES = {
    **{(h, len(domain)): domain for h, domain in DOMAINS.items() if (h, len(domain)) not in ONLY_ONE},
    **MORE_ARITIES,
}


def test_every_number_of_arguments_has_a_case():
    """A name that is keyed by the head alone would be called with arguments that mean something else."""
    for head in float_names():
        counts = getattr(head, "nargs", sp.S.Naturals0)
        if counts is not sp.S.Naturals0 and head is not functions.stop_gradient:
            missing = {(head, int(c)) for c in counts} - set(CASES) - ONLY_ONE
            assert not missing, missing


@pytest.mark.sample(70)
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__} {c[1]}")
def test_values_on_arrays(case):
    """Graph and NumPy code at six points, within 1e-11 of 30 digits."""
    import random

    head, count = case
    rng = random.Random(f"{head.__name__} {count}")
    places = [points(CASES[case], rng) for _ in range(6)]
    arrays = [np.array([float(p[k]) for p in places]) for k in range(count)]
    inputs = [input_node(sp.IndexedBase(name, shape=(6,)), (6,)) for name in "abcdefg"[:count]]
    graph = symad.core.graph.Graph(tuple(inputs), (apply(head, *inputs),))
    with mpmath.workdps(30):
        function = mpmath_function(head)
        wanted = [function(*[as_number(a[k]) for a in arrays]) for k in range(6)]
        wanted = np.array([float(mpmath.re(v)) for v in wanted])
    for call in (graph, lower(graph)):
        np.testing.assert_allclose(call(*arrays), wanted, rtol=1e-11, atol=1e-13)


def as_number(value):
    """Orders as ints, others as mpmath numbers."""
    return int(value) if value == int(value) else mpmath.mpf(float(value))


# ---- heads that are rewritten -------------------------------------------------------------------


REWRITTEN = {
    "harmonic": (sp.harmonic(x), lambda a: mpmath.harmonic(a)),
    "harmonic of order 2": (sp.harmonic(x, 2), lambda a: mpmath.zeta(2) - mpmath.zeta(2, a + 1)),
    "catalan": (sp.catalan(x), lambda a: mpmath.binomial(2 * a, a) / (a + 1)),
    "li": (sp.li(x), mpmath.li),
    "Li": (sp.Li(x), lambda a: mpmath.li(a, offset=True)),
    "E1": (sp.E1(x), mpmath.e1),
    "expint": (sp.expint(2, x), lambda a: mpmath.expint(2, a)),
    "erf2": (sp.erf2(x, y), lambda a, b: mpmath.erf(b) - mpmath.erf(a)),
    "logaddexp2": (numpy_nodes.logaddexp2(x, y), lambda a, b: mpmath.log(2**a + 2**b, 2)),
    "maximum": (numpy_nodes.maximum(x, y), lambda a, b: max(a, b)),
    "minimum": (numpy_nodes.minimum(x, y), lambda a, b: min(a, b)),
    "fma": (cfunctions.fma(x, y, 2), lambda a, b: a * b + 2),
    "Sqrt": (cfunctions.Sqrt(x), mpmath.sqrt),
    "Cbrt": (cfunctions.Cbrt(x), mpmath.cbrt),
    "cosm1": (scipy_nodes.cosm1(x), lambda a: mpmath.cos(a) - 1),
    "powm1": (scipy_nodes.powm1(x, y), lambda a, b: a**b - 1),
    "lowergamma": (sp.lowergamma(2, x, evaluate=False), lambda a: mpmath.gammainc(2, 0, a)),
    "uppergamma": (sp.uppergamma(sp.Rational(5, 2), x), lambda a: mpmath.gammainc(2.5, a)),
    "polylog": (sp.polylog(3, x / 5), lambda a: mpmath.polylog(3, a / 5)),
    "betainc": (sp.betainc(2, 3, 0, x / 5), lambda a: mpmath.betainc(2, 3, 0, a / 5)),
}
POINTS = (1.3, 0.7)


@pytest.mark.parametrize("name", REWRITTEN)
def test_values_and_derivatives_of_sympy_s_functions(name):
    expression, reference = REWRITTEN[name]
    graph = symad.trace(expression)
    point = POINTS[: len(graph.inputs)]
    with mpmath.workdps(40):
        exact = [mpmath.mpf(p) for p in point]
        wanted = float(reference(*exact))
        slopes = [
            float(mpmath.diff(lambda t, k=k: reference(*exact[:k], t, *exact[k + 1 :]), exact[k]))
            for k in range(len(point))
        ]
    values = symad.value_and_gradient(graph)
    for call in (values, lower(values)):
        np.testing.assert_allclose(call(*point), [wanted, *slopes], rtol=1e-11)
    for array in (np.full(3, p) for p in point[:1]):
        assert np.allclose(lower(graph)(array, *point[1:]), wanted, rtol=1e-11)
    assert symad.trace(symad.to_sympy(graph), inputs=graph.inputs) is graph


def test_elliptic_integrals_of_the_review():
    """lower(elliptic_e(x, y)) was 1.445 on arrays, where m landed in out=."""
    a, b = np.array([0.3, 0.4]), np.array([0.5, 0.2])
    for head, reference in ((elliptic_e, mpmath.ellipe), (elliptic_f, mpmath.ellipf)):
        wanted = [float(reference(p, q)) for p, q in zip(a, b, strict=True)]
        assert np.allclose(lower(head(x, y))(a, b), wanted, rtol=1e-14)
        slope = symad.gradient(head(x, y), (x, y))(0.3, 0.5)
        for k, found in enumerate(slope):
            by_mpmath = mpmath.diff(reference, (0.3, 0.5), (1 - k, k))
            assert found == pytest.approx(float(by_mpmath), rel=1e-12)
    turned = lower(elliptic_pi(x, y, z))(np.array([0.4, 0.4]), np.array([4.0, -2.0]), 0.5)
    assert np.allclose(turned, [float(mpmath.ellippi(0.4, v, 0.5)) for v in (4.0, -2.0)], rtol=1e-13)


def test_conditions_of_missing_and_infinite_numbers():
    expression = sp.Piecewise((7, cfunctions.isnan(x)), (8, cfunctions.isinf(x)), (x**2, True))
    graph = symad.trace(expression)
    for call in (graph, lower(graph), lower(graph, backend="c")):
        assert [float(call(v)) for v in (np.nan, np.inf, -np.inf, 3.0)] == [7, 8, 8, 9]
    assert symad.gradient(graph)(3.0) == 6.0


def test_the_choice_between_numbers():
    chosen = sp.ITE(x, y, z)
    for call in (symad.trace(chosen), lower(chosen), lower(chosen, backend="c")):
        assert call(True, 5, 3) == 5 and call(False, 5, 3) == 3
    both = sp.Piecewise((1, sp.ITE(x > 0, y > 0, z > 0)), (0, True))
    assert [symad.trace(both)(*p) for p in ((1, 1, -1), (1, -1, 1), (-1, 1, 1))] == [1, 0, 1]


# ---- names that are not what they seem ----------------------------------------------------------


def test_a_user_s_function_is_not_that_of_mpmath_with_its_name():
    """mpmath has functions called ff, zeta and catalan; the last is a number."""
    from sympy.utilities.lambdify import implemented_function

    mine = implemented_function("ff", lambda t: t + 1)
    assert symad.trace(mine(x))(2.0) == 3.0
    unknown = type("zeta", (sp.Function,), {})
    with pytest.raises(EvaluationError, match="zeta has no numeric value"):
        symad.trace(unknown(x))(2.0)
    assert symad.trace(sp.euler(x))(2.5) == pytest.approx(float(sp.euler(sp.Float(2.5))), rel=1e-14)
    with pytest.raises(EvaluationError, match="factorial2"):
        symad.trace(sp.factorial2(x))(0.3)


def test_derivatives_that_are_not_known_are_named():
    for expression in (sp.besselj(x, y), sp.legendre(x, y), sp.jn(x, y)):
        name = type(expression).__name__
        with pytest.raises(DerivativeError, match=f"{name} has no derivative by argument 1"):
            symad.gradient(expression, x)


# ---- SciPy's in traced functions ----------------------------------------------------------------

SCIPY = {
    "gammainc": ([2.0, 0.5], [1.5, 3.0]), "gammaincc": ([2.0, 0.5], [1.5, 3.0]),
    "betainc": ([2.0, 1.5], [3.0, 0.5], [0.3, 0.8]), "ive": ([1.5, 2.0], [2.0, -1.0]),
    "i0e": ([-3.0, 700.0],),
    "i1e": ([3.0, -700.0],), "log_ndtr": ([-30.0, 2.0],), "ndtri": ([1e-3, 0.6],),
    "rel_entr": ([0.2, 0.0], [0.7, 0.5]),
    "kl_div": ([0.2, 3.0], [0.7, 1.5]), "ellipe": ([0.3, -2.0],), "ellipeinc": ([0.4, 5.0], [0.3, 0.6]),
    "ellipkinc": ([0.4, 1.0], [0.3, 0.6]), "expn": (2, [0.4, 3.0]), "beta": ([0.4, 2.0], [1.3, 3.0]),
    "iv": (1, [0.4, 2.0]), "exp1": ([0.3, 2.0],), "erfcinv": ([0.3, 1.9],),
}  # fmt: skip


@pytest.mark.parametrize("name", SCIPY)
def test_functions_of_scipy(name):
    function = getattr(scipy.special, name)
    orders = [a for a in SCIPY[name] if isinstance(a, int)]
    arrays = [np.array(a) for a in SCIPY[name] if not isinstance(a, int)]
    graph = symad.trace(lambda *a: function(*orders, *a), arrays)
    for call in (graph, lower(graph), lower(graph, backend="c")):
        np.testing.assert_allclose(call(*arrays), function(*orders, *arrays), rtol=2e-15)
    *fixed, last = arrays
    slope = symad.gradient(symad.trace(lambda *a: function(*orders, *a).sum(), arrays), [len(fixed)])
    step = 1e-5 * np.maximum(abs(last), 1e-4)
    high, low = (function(*orders, *fixed, last + s) for s in (step, -step))
    np.testing.assert_allclose(slope(*arrays)[0], (high - low) / (2 * step), rtol=1e-5, atol=1e-12)


def test_divergences_outside_of_their_domain():
    p, q = np.array([0.0, 0.0, 0.3, -1.0, 0.2]), np.array([0.4, 0.0, 0.0, 1.0, 0.2])
    for function in (scipy.special.rel_entr, scipy.special.kl_div):
        graph = symad.trace(lambda a, b, f=function: f(a, b), [p, q])
        for call in (graph, lower(graph)):
            np.testing.assert_array_equal(call(p, q), function(p, q))


def test_python_functions_of_scipy_are_refused_by_name():
    with pytest.raises(TraceError, match=r"scipy\.special\.factorial2\b.* is not made for traced values"):
        symad.trace(lambda a: scipy.special.factorial2(a), [(3,)])


def test_logsumexp_of_scipy_is_refused_by_name_or_right():
    """Before SciPy 1.15 it calls functions of NumPy alone."""
    try:
        traced = symad.trace(scipy.special.logsumexp, [(3,)])
    except TraceError as problem:
        assert "scipy.special.logsumexp" in str(problem) and "is not made for traced values" in str(problem)
    else:
        np.testing.assert_allclose(traced([1.0, 2.0, 1000.0]), 1000.0, rtol=1e-15)


def test_polygamma_far_below_zero():
    """By reflection (DLMF 5.15.6), at a cost that does not grow with |x|."""
    trigamma, tetragamma = (lower(sp.polygamma(k, x)) for k in (1, 2))
    for point in (-0.7, -29.9999, -1234.5, -1e10 + 0.25, -1e15 + 0.5):
        with mpmath.workdps(60):
            v = mpmath.mpf(point)
            s, c = mpmath.sinpi(v), mpmath.cospi(v)
            first = float(-mpmath.psi(1, 1 - v) + (mpmath.pi / s) ** 2)
            second = float(mpmath.psi(2, 1 - v) - 2 * mpmath.pi**3 * c / s**3)
        assert trigamma(point) == pytest.approx(first, rel=1e-14)
        assert tetragamma(np.array([point, 2.0]))[0] == pytest.approx(second, rel=1e-11)


def test_degrees_that_are_no_integers():
    """SymPy itself takes those of these two for integers; as arguments of a graph they are read right."""
    n, a, b = sp.symbols("n a b")
    for head, inputs, floats, exact in (
        (sp.jacobi, [n, a, b, x], [2.5, 0.5, 1.5, 0.25], mpmath.jacobi(2.5, 0.5, 1.5, 0.25)),
        (sp.gegenbauer, [n, a, x], [2.5, 0.5, 0.25], mpmath.gegenbauer(2.5, 0.5, 0.25)),
    ):
        graph = symad.trace(head(*inputs), inputs=inputs)
        for f in (graph, lower(graph), lower(graph, "c")):
            assert f(*floats) == pytest.approx(float(exact), rel=1e-13)
        found = graph(*map(sp.Rational, floats))
        assert float(found.evalf()) == pytest.approx(float(exact), rel=1e-13)


def test_degrees_that_come_as_floats():
    """SciPy's series for a float degree has two digits of L_120(3) left, the recurrence all."""
    n = sp.Symbol("n")
    for head, right in ((sp.laguerre, mpmath.laguerre(120, 0, 3)), (sp.hermite, mpmath.hermite(120, 3))):
        for degree in (120, 120.0):
            assert symad.trace(head(n, x))(degree, 3.0) == pytest.approx(float(right), rel=1e-12)
            assert lower(head(n, x))(degree, 3.0) == pytest.approx(float(right), rel=1e-12)


def test_second_derivatives_of_degrees_that_are_no_integers():
    """SymPy takes C_n^(a) for a polynomial of degree int(n), which is not the second derivative of P_5/2."""
    for head, function in ((sp.legendre, mpmath.legendre), (sp.chebyshevu, mpmath.chebyu)):
        right = float(mpmath.diff(lambda t, f=function: f(2.5, t), 0.3, 2))
        assert symad.hessian(head(sp.Rational(5, 2), x), [x])(0.3).item() == pytest.approx(right, rel=1e-12)
    f = symad.trace(sp.hermite(sp.Rational(5, 2), x))
    right = [float(mpmath.hermite(2.5, v)) for v in (0.3, -0.8)]
    np.testing.assert_allclose([f(0.3), f(-0.8)], right, rtol=1e-13)


MOMENTS = [(1, 0, 1), (1, 0, 0), (2, 0, 2), (1, 2, 0), (1, 1, 1), (2, 2, 1)]


@pytest.mark.thorough
@pytest.mark.parametrize("orders", MOMENTS, ids=str)
def test_derivatives_of_elliptic_integrals(orders):
    """Where the formulas of tables cancel, near 1, beyond π/2, and for large parameters, by quadrature."""
    p, r, q = orders
    for m in (1e-9, 0.5, 1 - 1e-6, -0.7, -1e4):  # each by the rule that its poles ask for
        for n in (0.0, -3.0) if r else (0.0,):
            for z in (None, -1.2, 2.5):
                def integrand(t, m=m, n=n):
                    s = mpmath.sin(t) ** 2
                    return s**p * (1 - n * s) ** -r * (1 - m * s) ** (-q - mpmath.mpf(1) / 2)

                with mpmath.workdps(20):
                    quarter = mpmath.pi / 2
                    end = quarter if z is None else mpmath.mpf(z)
                    turns = [mpmath.sign(end) * quarter * k for k in range(int(abs(end) / quarter) + 1)]
                    right = float(mpmath.quad(integrand, [*turns, *([end] if end != turns[-1] else [])]))
                found = elliptic_moment(*orders, n, *(() if z is None else (z,)), m)
                assert found == pytest.approx(right, rel=1e-13), (m, n, z)
    assert elliptic_moment(1, 0, 1, 0.0, 1.0) == np.inf
    assert np.isnan(elliptic_moment(1, 0, 1, 0.0, [1.3, np.inf], 1.5)).all()


def routes(graph):
    """The graph itself and its kernels."""
    return [graph, *(lower(graph, b) for b in ("numpy", "c", "runs")), lower(graph, style="plain")]


@pytest.mark.thorough
def test_bessel_functions_at_negative_numbers():
    """yn of integer order turns its sign as mpmath says; where no real value is, all backends have none."""
    v = sp.Symbol("v", real=True)
    for n in (0, 1, 2):
        graph = symad.join(symad.trace(sp.yn(n, v), inputs=[v]), symad.gradient(sp.yn(n, v), v))

        def exact(t, n=n):
            return (-1) ** (n + 1) * mpmath.sqrt(mpmath.pi / -t / 2) * mpmath.bessely(n + 0.5, -t)

        right = [float(exact(mpmath.mpf(-1.5))), float(mpmath.diff(exact, -1.5))]
        for call in routes(graph):
            assert np.allclose([float(r) for r in call(-1.5)], right, rtol=1e-13)
    for f in (sp.bessely(1, v), sp.besselk(0, v), sp.bessely(sp.Rational(1, 2), v)):
        graph = symad.join(symad.trace(f, inputs=[v]), symad.gradient(f, v))
        for call in routes(graph):
            with np.errstate(all="ignore"):
                assert all(np.isnan(float(r)) for r in call(-1.5)), f


@pytest.mark.thorough
def test_formulas_of_tables_are_tested():
    """Derivatives of F and Π as SymPy prints them; these functions are not in the table of the checker."""
    elliptic = [(elliptic_f(x, y), y), (elliptic_pi(x, y), x), (elliptic_pi(x, y), y)]
    for f, by in (*elliptic, (sp.Shi(x), x), (sp.polylog(3, x), x)):
        assert symad.verify(f, by, gradient=sp.diff(f, by)).status == "tested"


@pytest.mark.parametrize("order", [3, sp.Rational(1, 2)])
def test_polylogarithms_end_at_the_ends_of_the_line(order):
    """mpmath's own do not end at NaN or −∞, and at 1 give ζ where the sum diverges."""
    x = sp.Symbol("x", real=True)
    value = symad.trace(sp.polylog(order, x))
    for point in (np.nan, -np.inf, np.inf):
        assert np.isnan(value(point))
        assert np.isnan(symad.gradient(value)(point))
        assert mpmath.isnan(value(mpmath.mpf(point)))
    slope = symad.gradient(value)(1.0)  # Σ k^(1 − s)
    assert np.isnan(slope) if order < 2 else np.isclose(slope, np.pi**2 / 6, rtol=1e-15)
