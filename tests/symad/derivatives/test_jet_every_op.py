"""Taylor mode of every op and every scalar function with a derivative: 60 digits, JAX's jet, nodes."""

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import LoweringError
from tests.numeric.agreement.function_cases import BINARY, NUMPY, SYMPY
from tests.numeric.agreement.special_cases import SPECIAL
from tests.numeric.programs.plain_cases import SIZES, examples_of_ops, leaves

ORDER = 3
WITHOUT = ("Compare", "Logic")
"""Their values are conditions."""
EXAMPLES = {
    name: g
    for name, g in examples_of_ops().items()
    if len(name.split()) == 2 and g.inputs and not name.startswith(WITHOUT)
}
LONG = ("Cotangent", "Second")
SLOW = ("besselk", "elliptic_pi")
"""mpmath takes seconds for these in 60 digits."""
FUNCTIONS = NUMPY | SYMPY | BINARY | SPECIAL


def exact(value):
    """As an array of mpmath's numbers, which floats are exactly."""
    array = np.asarray(value)
    made = np.empty(array.shape, dtype=object)
    for place in np.ndindex(array.shape):
        made[place] = mpmath.mpmathify(array[place])
    return made


def along(graph):
    """A point, whose matrices have large diagonals, and a direction."""
    g = np.random.default_rng(1)
    shapes = [tuple(int(sp.sympify(k).subs(SIZES)) for k in n.shape) for n in graph.input_nodes]
    values = [g.uniform(0.1, 0.9, s) + (np.eye(*s[-2:]) if len(s) > 1 else 0) for s in shapes]
    return values, [g.uniform(-1, 1, s) for s in shapes]


def quick(names, long):
    return [pytest.param(n, marks=pytest.mark.slow) if any(k in n for k in long) else n for n in names]


@pytest.mark.parametrize("case", quick(EXAMPLES, LONG))
def test_sixty_digits(case):
    """The derivatives of t ↦ f(x + t v), by mpmath's differences of the values in 60 digits."""
    graph = EXAMPLES[case]
    with mpmath.workdps(60):
        values, dots = ([exact(v) for v in part] for part in along(graph))

        def at(t):
            found = leaves(graph(*(exact(v + t * d)[()] for v, d in zip(values, dots, strict=True))))
            return [entry for part in found for entry in exact(part).ravel()]

        made = leaves(symad.jet(graph, ORDER)(*(v[()] for v in values), *(d[()] for d in dots)))
        orders = np.stack([np.concatenate([exact(v).ravel() for v in leaf]) for leaf in by_order(made)])
        for place in range(min(orders.shape[1], 4)):
            expected = mpmath.taylor(lambda t, place=place: at(t)[place], mpmath.mpf(0), ORDER)
            for k, coefficient in enumerate(expected):
                wanted = coefficient * mpmath.factorial(k)
                assert abs(orders[k, place] - wanted) <= mpmath.mpf(10) ** -50 * (1 + abs(wanted))


def by_order(flat):
    count = len(flat) // (ORDER + 1)
    return [flat[k * count : (k + 1) * count] for k in range(ORDER + 1)]


def points_of(name):
    """Two points of a function that lie in the middle of its domain and off its kinks."""
    case = FUNCTIONS[name]
    middle = [p for p in case.points if all(0.05 < abs(v) < 6 for v in np.atleast_1d(p))] or case.points
    real = [p for p in middle if mpmath.im(case.exact(*map(mpmath.mpf, np.atleast_1d(p).tolist()))) == 0]
    return case, real[: 1 if name in SLOW else 2]


@pytest.mark.sample(73)
@pytest.mark.parametrize("name", quick(FUNCTIONS, SLOW))
def test_scalar_functions(name):
    """Order 4 against mpmath's Taylor series of the function that the table gives by hand."""
    case, points = points_of(name)
    count = len(np.atleast_1d(points[0]))
    symbols = sp.symbols(f"x:{count}", real=True)
    if name in NUMPY:
        graph = symad.trace(case.function, [() for _ in symbols])
    else:
        graph = symad.trace(case.function(*symbols), list(symbols))
    made = symad.jet(graph, 4)
    assert len(symad.jet(graph, 10).nodes) <= 2000
    for point in points:
        with mpmath.workdps(60):
            at = [mpmath.mpf(v) for v in np.atleast_1d(point).tolist()]
            dots = [mpmath.mpf(k + 1) / 4 for k in range(count)]
            found = made(*at, *dots)
            expected = mpmath.taylor(
                lambda t, at=at, dots=dots: mpmath.re(
                    case.exact(*(a + t * d for a, d in zip(at, dots, strict=True)))
                ),
                mpmath.mpf(0), 4,
            )  # fmt: skip
            scale = max(abs(c) for c in expected)
            for k, coefficient in enumerate(expected):
                wanted = coefficient * mpmath.factorial(k)
                assert abs(found[k] - wanted) <= mpmath.mpf(10) ** -20 * (abs(wanted) + scale), (point, k)


@pytest.mark.thorough
def test_nodes_of_every_op():
    """At most 2,000 nodes to order 10, and no more than four times those to order 5, and the graph."""
    for case, graph in EXAMPLES.items():
        few, many = (len(symad.jet(graph, order).nodes) for order in (5, 10))
        assert many <= min(2000, 4 * few + len(graph.nodes)), (case, few, many)


@pytest.mark.parametrize("head", [sp.besselj, sp.bessely, sp.besseli, sp.besselk])
def test_functions_of_any_order(head):
    """Bessel functions of a symbol as order, along their argument: 50 digits and O(k²) nodes."""
    order, x = sp.symbols("nu x", positive=True)
    graph = symad.trace(head(order, x))
    made = symad.jet(graph, 3, wrt=x)
    counts = [len(symad.jet(graph, k, wrt=x).nodes) for k in (5, 10)]
    assert counts[1] <= 4 * counts[0]
    with mpmath.workdps(70):
        nu, at = mpmath.mpf("2.3"), mpmath.mpf("1.7")
        function = getattr(mpmath, head.__name__)
        expected = mpmath.taylor(lambda t: function(nu, at + t), 0, 3)
        given = {"nu": nu, "x": at, "x_dot": mpmath.mpf(1)}
        for k, found in enumerate(made(**given)):
            wanted = expected[k] * mpmath.factorial(k)
            assert abs(found - wanted) <= abs(wanted) * mpmath.mpf(10) ** -50


@pytest.mark.slow
def test_jax():
    """JAX's jet of the same graphs by `symad.jax`, wherever JAX has a rule for what they are in JAX."""
    jax = pytest.importorskip("jax")
    from jax.experimental.jet import jet
    from jax.extend.core import jaxpr_as_fun

    compared, without_rule = set(), (LoweringError, KeyError, jax.errors.UnexpectedTracerError)
    with jax.enable_x64(True):
        for case, graph in EXAMPLES.items():
            values, dots = along(graph)
            arrays = [jax.numpy.asarray(v) for v in values]
            moving = [[jax.numpy.asarray(d), *[jax.numpy.zeros(d.shape)] * (ORDER - 1)] for d in dots]
            try:
                program = jax.make_jaxpr(symad.jax.as_function(graph).code.values)(*arrays)
                first, rest = jet(jaxpr_as_fun(program), arrays, moving)
            except without_rule:
                continue
            made = by_order(leaves(symad.jet(graph, ORDER)(*values, *dots)))
            for j, parts in enumerate(zip(first, *map(list, zip(*rest, strict=True)), strict=True)):
                for k, part in enumerate(parts):
                    expected, found = np.asarray(part, float), np.asarray(made[k][j], float)
                    scale = 1 + np.abs(expected).max()
                    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * scale, err_msg=case)
            compared.add(case.split()[0])
    assert len(compared) >= 30, sorted(compared)
