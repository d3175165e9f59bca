"""Dual numbers: arithmetic, functions, nesting, every kind of component, and the graph's policy."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

import symad
from symad.core.graph import Graph, topological
from symad.derivatives.hessian import MODES
from symad.errors import DerivativeError, EvaluationError
from symad.numbers.dual import Dual, split
from symad.numbers.exact_linalg import determinant
from symad.numbers.number_domains import apply
from symad.op_examples import EXAMPLES
from symad.ops.arrays.reduction import extreme
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.sources import Input, constant, input_node
from symad.ops.elementwise.apply import SLOPES
from symad.ops.elementwise.selection import Condition

x, y = sympy.symbols("x y", real=True)


def parts(d):
    """All components of a nested Dual, flat."""
    return parts(d.value) + parts(d.tangent) if isinstance(d, Dual) else [d]


def test_the_polynomial_of_the_tables():
    g = symad.trace(x + x**2)
    assert parts(g(Dual(3, 1))) == [12, 7]
    assert parts(g(Dual(Dual(3, 1), Dual(1, 0)))) == [12, 7, 7, 2]


numbers = st.fractions(-5, 5, max_denominator=100).filter(bool)


@pytest.mark.thorough
@given(numbers, numbers, numbers, numbers)
def test_operators_follow_the_rules_of_calculus(a, s, b, t):
    u, v = Dual(a, s), Dual(b, t)
    assert parts(u + v) == [a + b, s + t]
    assert parts(u - v) == [a - b, s - t]
    assert parts(u * v) == [a * b, s * b + a * t]
    assert parts(u / v) == [a / b, (s * b - a * t) / b**2]
    assert parts(2 - u) == [2 - a, -s]
    assert parts(2 / u) == [2 / a, -2 * s / a**2]
    assert parts(u**3) == [a**3, 3 * a**2 * s]
    assert parts(u**-2) == [a**-2, -2 * a**-3 * s]
    assert parts(abs(u)) == [abs(a), s if a > 0 else -s]
    assert (u < v, u >= v, u == v, u != v) == (a < b, a >= b, a == b, a != b)


def test_powers_of_two_variables():
    d = Dual(2.0, 1.0) ** Dual(3.0, 5.0)
    np.testing.assert_allclose(parts(d), [8, 12 + 5 * 8 * np.log(2)], rtol=1e-14)
    np.testing.assert_allclose(parts(2 ** Dual(3.0, 5.0)), [8, 5 * 8 * np.log(2)], rtol=1e-14)


UNARY = {
    np.sin: sympy.sin, np.cos: sympy.cos, np.tan: sympy.tan, np.arcsin: sympy.asin,
    np.arctan: sympy.atan, np.sinh: sympy.sinh, np.tanh: sympy.tanh, np.arctanh: sympy.atanh,
    np.exp: sympy.exp, np.log: sympy.log, np.sqrt: sympy.sqrt, np.square: lambda v: v**2,
    np.log1p: lambda v: sympy.log(1 + v), np.expm1: lambda v: sympy.exp(v) - 1,
    np.exp2: lambda v: 2**v, np.log2: lambda v: sympy.log(v, 2), np.cbrt: sympy.cbrt,
    np.log10: lambda v: sympy.log(v, 10), np.reciprocal: lambda v: 1 / v, np.abs: sympy.Abs,
    np.degrees: lambda v: v * 180 / sympy.pi, special.erf: sympy.erf, special.gamma: sympy.gamma,
    special.psi: sympy.digamma, special.gammaln: sympy.loggamma,
}  # fmt: skip


@pytest.mark.parametrize("ufunc", UNARY, ids=lambda u: u.__name__)
def test_ufuncs_give_value_first_and_second_derivative(ufunc):
    p = sympy.Symbol("p", positive=True)
    form = UNARY[ufunc](p)
    expected = [float(sympy.diff(form, p, k).subs(p, sympy.Rational(3, 8)).evalf(30)) for k in range(3)]
    got = parts(ufunc(Dual(Dual(0.375, 1.0), Dual(1.0, 0.0))))
    np.testing.assert_allclose(got, [expected[0], expected[1], expected[1], expected[2]], rtol=1e-12)


@pytest.mark.parametrize("ufunc", [u for u in UNARY if hasattr(np, u.__name__)], ids=lambda u: u.__name__)
def test_ufuncs_on_arrays_of_duals_call_each_entry(ufunc):
    array = np.array([Dual(0.375, 1.0), Dual(0.5, 2.0)])
    assert [parts(d) for d in ufunc(array)] == [parts(ufunc(d)) for d in array]


def test_two_argument_ufuncs():
    a, b = Dual(0.3, 1.0), Dual(0.4, 0.0)
    np.testing.assert_allclose(parts(np.hypot(a, b)), [0.5, 0.6])
    np.testing.assert_allclose(parts(np.arctan2(a, b)), [np.arctan2(0.3, 0.4), 0.4 / 0.25])
    np.testing.assert_allclose(parts(np.logaddexp(a, b)), [np.logaddexp(0.3, 0.4), 1 / (1 + np.exp(0.1))])
    np.testing.assert_allclose(parts(np.logaddexp(Dual(800.0, 1.0), 0.0)), [800, 1])
    np.testing.assert_allclose(parts(np.remainder(Dual(7.5, 1.0), Dual(2.0, 1.0))), [1.5, 1 - 3])
    assert parts(Dual(7.5, 1.0) // 2.0) == [3.0, 0]


def test_small_arguments_keep_their_digits():
    assert parts(np.log1p(Dual(1e-20, 1.0)))[0] == 1e-20
    assert parts(np.expm1(Dual(1e-20, 1.0)))[0] == 1e-20


def test_arrays_of_duals_and_duals_of_arrays():
    d = np.array([1.0, 2.0]) * Dual(3.0, 1.0)
    assert d.dtype == object and [parts(e) for e in d] == [[3, 1], [6, 2]]
    whole = np.array([1.0, 2.0]) * Dual(np.array([3.0, 4.0]), np.array([1.0, 5.0]))
    assert isinstance(whole, Dual)
    np.testing.assert_array_equal(whole.value, [3, 8])
    np.testing.assert_array_equal(whole.tangent, [1, 10])
    m = np.array([[1.0, 2.0], [3.0, 4.0]])
    product = m @ Dual(np.array([1.0, 1.0]), np.array([0.0, 1.0]))
    np.testing.assert_array_equal(product.tangent, [2, 4])
    array = np.array([Dual(1.0, 2.0)])
    array += Dual(1.0, 1.0)
    assert parts(array[0]) == [2, 3]


def test_components_of_every_kind():
    g = symad.trace((x + 1) / x**2)  # derivative -1/x² - 2/x³
    third = Fraction(1, 3)
    assert parts(g(Dual(third, 1))) == [12, -63]
    assert all(isinstance(p, Fraction) for p in parts(g(Dual(third, 1))))
    with mpmath.workdps(40):
        value, slope = parts(g(Dual(mpmath.mpf(3), 1)))
        assert abs(value - mpmath.mpf(4) / 9) < 1e-39
        assert abs(slope + mpmath.mpf(5) / 27) < 1e-39
    value, slope = parts(g(Dual(x, 1)))
    assert sympy.simplify(slope - sympy.diff(value, x)) == 0
    assert sympy.simplify(value - (x + 1) / x**2) == 0


def test_constants_are_exact_among_exact_components():
    g = symad.trace(x * sympy.Rational(1, 3) + sympy.pi)
    assert g(Dual(x, 1)).value == x / 3 + sympy.pi
    with mpmath.workdps(30):
        assert abs(g(Dual(mpmath.mpf(3), 1)).value - 1 - mpmath.pi) < 1e-29


def test_third_derivatives_by_nesting():
    seed = Dual(Dual(Dual(2.0, 1.0), Dual(1.0)), Dual(Dual(1.0)))
    assert parts(symad.trace(x**4)(seed)) == [16, 32, 32, 48, 32, 48, 48, 48]


def test_depths_never_mix():
    inner, outer = Dual(1.0, 1.0), Dual(Dual(1.0, 1.0), Dual(1.0))
    for operation in (lambda: inner * outer, lambda: inner + outer, lambda: outer**inner):
        with pytest.raises(EvaluationError, match=r"depths 1 and 2.*Dual\(number, 0\)"):
            operation()


def test_the_classical_perturbation_confusion():
    """d/dx (x · d/dy (x + y) at y = 1) at x = 1 is 1; confused tangents give 2."""

    def derivative(f, at):
        return f(Dual(at, 1.0)).tangent

    def lifted(a):  # x is a constant of the inner differentiation
        return a * derivative(lambda b: Dual(a, 0) + b, Dual(1.0))

    assert derivative(lifted, 1.0) == 1.0


def test_ties_kinks_and_steps():
    g = symad.trace(sympy.Max(x, y, 2))
    assert parts(g(Dual(2.0, 3.0), Dual(2.0, 6.0))) == [2, 3]
    assert parts(np.maximum(Dual(1.0, 2.0), Dual(1.0, 4.0))) == [1, 3]
    assert parts(symad.trace(sympy.Abs(x))(Dual(0.0, 1.0))) == [0, 0]
    steps = sympy.sign(x) + sympy.floor(x) + sympy.Heaviside(x)
    assert parts(symad.trace(steps)(Dual(0.0, 1.0))) == [0.5, 0]


def test_a_branch_not_taken_does_not_leak():
    g = symad.trace(sympy.Piecewise((sympy.sqrt(sympy.log(x)), x > 1), (x**2, True)))
    assert parts(g(Dual(0.0, 1.0))) == [0, 0]
    assert parts(g(Dual(Fraction(1, 2), 1))) == [Fraction(1, 4), 1]
    a = sympy.MatrixSymbol("A", 2, 1)
    largest = Graph((_input(a),), (extreme("max", _input(a)),))
    assert parts(largest(Dual(np.array([[2.0], [2.0]]), np.array([[1.0], [4.0]])))) == [2, 2.5]


def _input(symbol):
    return input_node(symbol, symbol.shape)


def test_limits_at_zero():
    assert parts(symad.trace(sympy.sqrt(x))(Dual(0.0, 1.0))) == [0, np.inf]
    assert parts(symad.trace(x**y)(Dual(0.0, 1.0), Dual(2.0, 1.0))) == [0, 0]
    assert parts(Dual(0.0, 1.0) ** 0) == [1, 0]
    assert parts(symad.trace(sympy.sqrt(x) + y)(Dual(0.0), Dual(1.0, 1.0))) == [1, 1]


def test_an_undefined_exact_value_says_why():
    with pytest.raises(EvaluationError, match="/ 0"):
        symad.trace(1 / x)(Dual(Fraction(0), 1))


def real_examples():
    """The examples of all ops that have inputs of known size and a real value."""
    for cls, make in EXAMPLES.items():
        for k, node in enumerate(make()):
            inputs = tuple(n for n in topological([node]) if isinstance(n.op, Input))
            graph = Graph(inputs, (node,))
            if inputs and not graph.dims and not isinstance(node.op, Condition):
                yield pytest.param(graph, id=f"{cls.__name__} {k}")


@pytest.mark.parametrize("graph", list(real_examples()))
def test_every_op_agrees_with_the_pushforward(graph):
    rng = np.random.default_rng(0)
    shapes = [n.shape for n in graph.input_nodes]
    values = [rng.uniform(0.1, 0.9, shape)[()] for shape in shapes]
    dots = [rng.uniform(-1, 1, shape)[()] for shape in shapes]
    got = split(graph(*[Dual(v, t) for v, t in zip(values, dots, strict=True)]))
    expected = symad.pushforward(graph)(*values, *dots)
    for mine, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(np.asarray(mine, dtype=float), theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_hyper_duals_give_the_hessian_of_every_mode(mode):
    f = symad.trace(sympy.sin(x * y) * sympy.exp(x) / sympy.sqrt(1 + y**2) + sympy.atan2(x, y))
    point, unit = (0.3, 0.7), np.eye(2)
    hessian = np.array([
        [parts(f(*(Dual(Dual(p, unit[i, k]), Dual(unit[j, k])) for k, p in enumerate(point))))[3]
         for j in range(2)] for i in range(2)
    ])  # fmt: skip
    np.testing.assert_allclose(symad.hessian(f, mode=mode)(*point), hessian, rtol=1e-12)


def test_singular_determinants_have_a_derivative():
    singular = np.array([[1, 2, 3], [2, 4, 6], [1, 0, 1]], dtype=float)
    matrix = np.frompyfunc(Dual, 2, 1)(singular, np.eye(3))
    minors = [np.linalg.det(np.delete(np.delete(singular, k, 0), k, 1)) for k in range(3)]
    np.testing.assert_allclose(parts(determinant(matrix)), [0, sum(minors)], atol=1e-13)


def test_symbolic_linear_algebra():
    matrix = np.array([[Dual(x, 1), 1], [1, Dual(x)]], dtype=object)
    result = determinant(matrix)
    assert sympy.expand(result.value - (x**2 - 1)) == 0
    assert sympy.simplify(result.tangent - x) == 0


def test_functions_sympy_cannot_differentiate_use_the_registered_slope(monkeypatch):
    head = sympy.Function("bump")
    monkeypatch.setattr(head, "_imp_", staticmethod(lambda v: v * v), raising=False)
    with pytest.raises(DerivativeError, match="bump"):
        apply(head, (Dual(3.0, 1.0),))
    monkeypatch.setitem(SLOPES, head, lambda node, args, i: mul(constant(2), *args))
    assert parts(apply(head, (Dual(3.0, 1.0),))) == [9, 6]


def test_mistakes_are_told():
    with pytest.raises(TypeError):
        float(Dual(1.0, 1.0))  # would drop the tangent
    with pytest.raises(TypeError):
        hash(Dual(1.0, 1.0))
    with pytest.raises(TypeError):
        np.isfinite(Dual(1.0, 1.0))
    with pytest.raises(AttributeError, match="no attribute 'grad'"):
        _ = Dual(1.0, 1.0).grad
