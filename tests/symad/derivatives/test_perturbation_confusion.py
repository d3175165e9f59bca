"""Functions that close over values of the functions around them, with any names.

Known examples: Siskind and Pearlmutter, "Perturbation confusion and referential transparency" (2005);
Manzyuk, Pearlmutter, Radul, Rush and Siskind, "Perturbation confusion in forward automatic
differentiation of higher-order functions" (2019). Expected values are by hand.
"""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.errors import DerivativeError, SavingError, TraceError
from symad.facts.functions import FACTS
from symad.numeric import lower
from symad.ops.elementwise.apply import SLOPES

n, m = sp.symbols("n m", integer=True, positive=True)


def slope(f, mode="reverse"):
    """f' of a function of one number."""
    graph = symad.trace(lambda x: f(x), [()])
    return symad.gradient(graph, "x", mode=mode)


both = pytest.mark.parametrize("mode", ["forward", "reverse"])


@both
def test_siskind_and_pearlmutter(mode):
    """d/dx (x d/dy (x + y)) = 1, and 2 where the two perturbations are confused."""
    assert slope(lambda x: x * slope(lambda y: x + y, mode)(1.0), mode)(1.0) == 1
    assert slope(lambda x: x * slope(lambda y: x * y, mode)(2.0), mode)(3.0) == 6


@both
def test_an_inner_parameter_with_the_name_of_the_outer_one(mode):
    def f(x):
        z = x
        return z * symad.gradient(symad.trace(lambda x: z * x, [()]), mode=mode)(x)

    assert symad.gradient(symad.trace(f, [()]), mode=mode)(3.0) == 6.0


def test_manzyuk_and_others():
    """D̂ f = y ↦ d/du f(y + u) at 0: applied twice to x³ it is 6y, and 0 where confused."""

    def shifted(f):
        return lambda y: slope(lambda u: f(y + u))(0.0)

    assert slope(lambda y: shifted(shifted(lambda x: x**3))(y))(5.0) == 6
    assert symad.trace(lambda y: shifted(shifted(lambda x: x**3))(y), [()])(5.0) == 30


def test_derivatives_of_every_order_inside_each_other():
    """x · ∂_x(x · ∂_x(x · ∂_x x²)) with one name throughout: x d/dx three times is 8x²."""

    def euler(f):
        return lambda x: x * slope(f)(x)

    twice = euler(euler(euler(lambda x: x**2)))
    assert symad.trace(twice, [()])(3.0) == 72
    assert slope(twice)(3.0) == 48


def test_inner_functions_of_numbers_still_depend_on_the_outer_value():
    assert slope(lambda x: symad.trace(lambda y: x * x * y, [()])(3.0))(2.0) == 12
    assert slope(lambda x: slope(lambda y: x * y * y)(3.0))(2.0) == 6


def test_jvp_and_hvp_and_hessian():
    def f(x):
        inner = symad.trace(lambda x_dot, x_: x * x_dot**2 * x_, [(), ()])
        return symad.pushforward(inner, 0)(x, x, 1.0)[1] + symad.hessian(inner, 0)(x, x)[0, 0]

    # the pushforward gives 2x³, the Hessian 2x²
    assert slope(f)(3.0) == 6 * 9 + 4 * 3
    assert slope(lambda x: symad.hvp(symad.trace(lambda v: x * v**3, [()]), "v")(x, x))(2.0) == 6 * 3 * 4


def test_vmap_with_the_names_and_dimensions_that_it_uses_itself():
    B = sp.Symbol("B", integer=True, positive=True)

    def f(x):
        rows = symad.vmap(symad.trace(lambda x_: (x * x_).sum(), [()]))
        return rows(2 * x[:3]).sum()

    found = symad.gradient(symad.trace(f, [(B,)]))(np.array([1.0, 2.0, 3.0, 4.0]))
    # Σ_i 2 x_i Σ_j x_j over i < 3: 2 Σ_j x_j [k < 3] + 2 Σ_{i<3} x_i
    assert np.array_equal(found, [32, 32, 32, 12])


def test_scan_fold_and_remat():
    def f(x):
        def step(c, v):
            return c + slope(lambda x_: x * c * x_**2)(v)

        last = functions.fold(step, x, x * np.array([1.0, 2.0]))
        part = functions.remat(lambda c: c * slope(lambda x_: x * x_ * c)(c))
        return last + part(x)

    # c ↦ c(1 + 2x·x) then c(1 + 4x²), and x·x·x
    def by_hand(x):
        return x * (1 + 2 * x**2) * (1 + 4 * x**2) + x**3

    x = sp.Symbol("x")
    assert symad.trace(f, [()])(1.5) == by_hand(1.5)
    assert slope(f)(1.5) == pytest.approx(float(sp.diff(by_hand(x), x).subs(x, 1.5)), rel=1e-15)


def test_a_scan_inside_of_a_function_inside_of_a_scan():
    def outer(c, v):
        inner = symad.trace(lambda c_: functions.fold(lambda h, w: h * c + w * c_, c_, v * np.ones(2)), [()])
        return symad.gradient(inner)(c)

    # h ↦ c(ch + vc_) + v c_ with h = c_: slope in c_ is c² + cv + v
    def by_hand(c, v):
        return c * c + c * v + v

    start = sp.Symbol("s")
    wanted = by_hand(by_hand(start, 2), 3)
    f = symad.trace(lambda c: functions.fold(outer, c, np.array([2.0, 3.0])), [()])
    assert f(0.5) == float(wanted.subs(start, 0.5))
    assert symad.gradient(f)(0.5) == float(sp.diff(wanted, start).subs(start, 0.5))


def test_implicit_functions_of_outer_values():
    """y³ = x², so y' = (2/3) x^(−1/3); with the unknown named as the outer value."""

    def f(x):
        return symad.implicit(symad.trace(lambda x_: x_**3 - x * x, [()]), 0)(1.5)

    def of_one_name(x):
        z = x
        return symad.implicit(symad.trace(lambda x: x**3 - z * z, [()]), 0)(1.5)

    for g in (f, of_one_name):
        assert slope(g)(2.0) == pytest.approx(2 / 3 * 2 ** (-1 / 3), rel=1e-14)


def test_a_solver_is_not_given_outer_values():
    def f(x):
        equation = symad.trace(lambda y: y**3 - x, [()])
        return symad.implicit(equation, 0, solver=lambda guess: guess)(1.5)

    with pytest.raises(DerivativeError, match="make them parameters"):
        symad.trace(f, [()])


def test_expressions_of_sympy_around_traced_values():
    x, y = sp.symbols("x y", real=True)

    def f(u):
        return symad.gradient(sp.Mul(x**2, sp.sympify(u)), x)(u)  # 2u²

    assert symad.gradient(symad.trace(f, [x]))(3.0) == 12.0
    inner = symad.trace(lambda v: symad.trace(lambda w: x * y * w, [y])(v), [x])  # y is w there
    assert inner(3.0) == 27.0


def test_registered_derivatives_that_close_over_outer_values():
    scaled = sp.Function("scaled_by_outer", real=True)

    def f(x):
        functions.register_function(scaled, lambda u: u * u, [lambda u: x * u])
        return symad.gradient(symad.trace(lambda x_: scaled(x_), [()]))(x)

    assert slope(f)(3.0) == 6.0
    del SLOPES[scaled], FACTS[scaled]


def test_joined_and_structured_graphs():
    def f(x):
        inner = symad.join(symad.trace(lambda x_: x * x_, [()]), symad.trace(lambda x_: x_ + x, [()]))
        first, second = inner(x)
        return first * second  # x² · 2x

    assert slope(f)(2.0) == 24.0


def test_examples_of_inputs_may_be_traced_values():
    def f(a):
        return symad.gradient(symad.trace(lambda b: (a * b**2).sum(), [a]))(a).sum()

    found = symad.gradient(symad.trace(f, [(3,)]))(np.array([1.0, 2.0, 3.0]))
    assert np.array_equal(found, [4.0, 8.0, 12.0])


def test_lowered_code_and_shapes_that_are_symbols():
    def f(x, w):
        inner = symad.trace(lambda x_: np.sum(np.tanh(w * x_) * x), [(n,)])
        return symad.gradient(inner)(x).sum()

    graph = symad.gradient(symad.trace(f, [(n,), ()]))
    x, w = np.array([0.5, -1.0, 2.0]), 0.7
    s, u = sp.symbols("s u")
    by_hand = (sp.diff(sp.tanh(u * s), s) * s).diff(s), (sp.diff(sp.tanh(u * s), s) * s).diff(u)
    for backend in ("numpy", "c"):
        for got, formula in zip(lower(graph, backend=backend)(x, w), by_hand, strict=True):
            wanted = np.array([float(formula.subs({s: v, u: w})) for v in x])
            np.testing.assert_allclose(got, wanted if np.ndim(got) else wanted.sum(), rtol=1e-13)


# ---- values that leave the function in which they live ------------------------------------------


def test_values_that_leak_are_named():
    kept = []

    def keeper(x):
        kept.append(2 * x)
        return x

    symad.trace(keeper, [()])
    with pytest.raises(TraceError, match="belongs to the traced function keeper, which has ended"):
        symad.trace(lambda x: x * kept[0], [()])

    def step(c, v):
        kept.append(c)
        return c * v

    with pytest.raises(TraceError, match="a step of scan, which has ended"):
        symad.trace(lambda x: functions.scan(step, x, np.ones(2) * x) * kept[-1], [()])


def test_graphs_that_leak_are_named(tmp_path):
    kept = []

    def keeper(x):
        kept.append(symad.trace(lambda y: x * y, [()], ))
        return x

    symad.trace(keeper, [()])
    for use in (
        lambda g: g(2.0), lower, symad.gradient, symad.to_sympy, symad.check, symad.vmap,
        lambda g: symad.save(g, tmp_path / "g.json"), lambda g: symad.trace(lambda y: g(y), [()]),
    ):  # fmt: skip
        with pytest.raises((TraceError, SavingError), match="the traced function keeper"):
            use(kept[0])


def test_lowering_inside_of_a_function_is_refused():
    with pytest.raises(TraceError, match="lower of the graph"):
        symad.trace(lambda x: lower(symad.trace(lambda y: x * y, [()]))(2.0), [()])


def test_traced_values_are_no_functions():
    with pytest.raises(TraceError, match="is not a function"):
        symad.trace(lambda x: symad.gradient(x * x, x), [()])


# ---- placeholders of bodies inside each other ----------------------------------------------------


@pytest.mark.thorough
def test_loops_in_recomputed_parts_in_generated_code():
    """The bodies of the part and of its loop number their inputs from 0; y is 1 outside and 2 inside."""
    points = np.array([0.3, -0.5, 0.8])

    def f(z, y):
        part = functions.remat(lambda u: u * functions.fold(lambda c, v: np.tanh(c * (v + y)), u, points))
        return part(z)

    def by_hand(z, y):
        c = z
        for v in points:
            c = np.tanh(c * (v + y))
        return z * c

    values = symad.value_and_gradient(symad.trace(f, [(), ()]))
    steps = ((1e-5, 0), (0, 1e-5))
    slopes = [(by_hand(0.7 + s, t - 0.4) - by_hand(0.7 - s, -0.4 - t)) / 2e-5 for s, t in steps]
    for call in (values, lower(values), lower(values, backend="c")):
        np.testing.assert_allclose(call(0.7, -0.4)[0], by_hand(0.7, -0.4), rtol=1e-14)
        np.testing.assert_allclose(call(0.7, -0.4)[1:], slopes, rtol=1e-8)
    graph = symad.trace(f, [(), ()])
    for backend in ("numpy", "c"):  # a scalar of scalars, with an array inside of the part
        np.testing.assert_allclose(lower(graph, backend=backend)(0.7, -0.4), by_hand(0.7, -0.4), rtol=1e-14)
    batch = symad.vmap(graph, in_axes=(0, None))
    np.testing.assert_allclose(batch(points, -0.4), [by_hand(p, -0.4) for p in points], rtol=1e-14)


def test_graphs_of_scalars_at_arrays_and_scalars_of_exchanged_names():
    x, y = sp.symbols("x y", real=True)
    difference = symad.trace(x - 2 * y)

    def f(x, y):
        return difference(y, x)  # x is an array, and y a number of the name of an input that becomes one

    graph = symad.trace(f, [(3,), ()])
    assert np.array_equal(graph(np.arange(3.0), 10.0), 10 - 2 * np.arange(3.0))
