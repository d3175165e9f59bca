"""Names and comments in fast array code: names by role, names that are no code, values unchanged."""

import ast
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.numeric import lower
from symad.numeric.numpy_arrays import lower as lower_numpy
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.scheduling.roles import NO_ROLES
from tests.numeric.programs import plain_cases as cases

ARRAYS = ("rnn", "lstm", "attention")


def entry(source):
    return ast.parse(source).body[-1]


def assigned(function):
    """Every name that a function assigns, except the variables of loops and names that are set to None."""
    nodes = [n for n in ast.walk(function) if isinstance(n, ast.Assign)]
    values = [n for n in nodes if not (isinstance(n.value, ast.Constant) and n.value.value is None)]
    targets = [t for n in values for t in n.targets]
    names = [n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", ARRAYS)
def test_results_are_called_by_their_roles(name, backend):
    graph = cases.LISTINGS[name]()
    function = entry(lower(graph, backend=backend).source)
    returned = function.body[-1].value.elts
    assert [r.id for r in returned] == list(graph.origin.labels)


@pytest.mark.parametrize("name", ARRAYS)
def test_every_name_that_is_given_is_read(name):
    function = entry(lower(cases.LISTINGS[name]()).source)
    read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    assert assigned(function) - read == set()


@pytest.mark.parametrize("name", ARRAYS)
def test_fast_code_equals_plain_code(name):
    graph = cases.LISTINGS[name]()
    values = cases.point(graph)
    cases.assert_same(lower(graph)(*values), lower(graph, style="plain")(*values))


def test_a_recurrence_has_its_states_rows_and_formula():
    source = lower(cases.LISTINGS["rnn"]()).source
    assert "    # h_t = f(h_{t-1}, xsU_t),   t = 0 … T - 1\n" in source
    assert "    # h_bar_t = f(h_bar_{t+1}, slope_t),   t = T - 1 … 0\n" in source
    assert {"xsU", "h", "h_before", "h_bar", "a_bar", "W_T"} <= assigned(entry(source))
    assert "_pad" not in source  # the cotangent of the last state is not padded


def test_names_are_identifiers_whatever_they_are_made_of():
    plans = lower_numpy.plans(lower_numpy.passes, "float64", NO_ROLES)
    writer = ArrayWriter(symad.trace(lambda x: x, [(3,)]), "float64", plans)
    assert writer.fresh("f\nprint('run')").isidentifier()
    assert writer.fresh("itertools_t") != writer.fresh("itertools_t")


def test_values_do_not_hide_what_modules_import():
    def sys(x):
        return (np.exp(x) ** 2).sum()

    n = sp.Symbol("itertools", integer=True, positive=True)
    x = sp.IndexedBase("threading", shape=(n,))
    kernel = lower(symad.value_and_gradient(symad.trace(sys, [x])))
    value, gradient = kernel(np.zeros(70_000))
    assert value == 70_000 and np.array_equal(gradient, np.full(70_000, 2.0))


@pytest.mark.parametrize(("backend", "style"), [("numpy", "fast"), ("numpy", "plain"), ("c", "fast")])
@pytest.mark.parametrize("name", ["sech", "f"])
@pytest.mark.parametrize("given", ["sech", "x"])
def test_no_value_hides_a_function_that_the_module_holds(backend, style, name, given):
    """A step calls the helper sech; its array, an input or the entry point may be called sech as well."""
    slope = symad.gradient(symad.trace(np.tanh, [()]))
    points = np.array([0.3, -0.5, 0.8])

    def summed(x, y):
        return np.sum(functions.scan(lambda c, v: c * slope(c * v), x, y * points))

    graph = symad.value_and_gradient(symad.trace(summed, inputs=sp.symbols([given, "y"], real=True)))
    x, y = 0.3, 0.4
    kernel = lower(graph.named(name), backend, style=style)
    value, by_x, by_y = kernel(**{given: x, "y": y})

    def by_hand(x, y):
        states = []
        for v in y * points:
            x = x / np.cosh(x * v) ** 2
            states.append(x)
        return np.sum(states)

    assert np.isclose(value, by_hand(x, y), rtol=1e-13)
    assert np.isclose(by_x, np.imag(by_hand(x + 1e-100j, y)) / 1e-100, rtol=1e-13)
    assert np.isclose(by_y, np.imag(by_hand(x, y + 1e-100j)) / 1e-100, rtol=1e-13)


@pytest.mark.parametrize("style", ["fast", "plain"])
def test_names_of_functions_are_free_for_inputs(style):
    """An input called beta keeps its name, and an input called like a function of the module is accepted."""
    beta, relu, x = sp.symbols("beta relu x", real=True)
    assert "def f(beta, x):" in lower(symad.trace(beta * sp.sin(x)), style=style).source
    graph = symad.trace(relu * sp.sech(x) * sp.beta(x, 2) + beta, inputs=[beta, relu, x]).named("beta")
    kernel, wanted = lower(graph, style=style), 3 / np.cosh(1.5) / (1.5 * 2.5) + 4
    assert np.isclose(kernel(beta=4.0, relu=3.0, x=1.5), wanted)
    assert np.allclose(kernel(4.0, np.full(3, 3.0), 1.5), wanted)


@pytest.mark.thorough
def test_long_programs_of_a_name_that_they_use():
    """Regular programs are printed as runs, with index arrays, constants and functions of the module."""
    for name in ("sech", "CONSTANTS", "RESULTS", "I1"):
        x = sp.symbols("x:300", real=True)
        graph = symad.gradient(sp.Add(*[sp.sech(a) * b**2 + 3 * b for a, b in pairwise(x)]), x).named(name)
        kernel, point = lower(graph), np.linspace(-1, 1, 300)
        assert "_runs(" in kernel.source or "v[" in kernel.source
        assert np.allclose(kernel(*point), graph(*point), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_variables_that_are_named_like_generated_ones(dtype):
    def f(x):
        v1 = x[[1]]
        v2 = v1 * x + v1
        v4 = np.sin(v2) * v1
        return v4 + v2, v1

    values = np.random.default_rng(0).normal(size=(2, 4))
    found = lower(symad.trace(f, [(2, 4)]), dtype=dtype)(values)
    for one, wanted in zip(found, f(values), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-14 if dtype == "float64" else 1e-5)
