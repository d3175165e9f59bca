"""One input, or one bare `wrt`: the gradient and the Hessian-vector product are bare; otherwise tuples."""

from dataclasses import dataclass

import numpy as np
import pytest
import sympy as sp
from scipy.optimize import minimize
from sympy.tensor.array.expressions import ArraySymbol

import symad
from symad.errors import TraceError
from symad.numeric import lower

x, y = sp.symbols("x y", real=True)
Q = np.array([0.3, -0.7])
V = np.array([1.5, 0.25])


@dataclass(frozen=True)
class Pair:
    first: np.ndarray
    second: float


def halves(v):
    return np.sum(np.cosh(v))


# For each: the function, its one argument, the gradient there (of Σ cosh), a direction, and H v.
ONE_INPUT = {
    "scalar": (symad.trace(sp.cosh(x)), 0.3, np.sinh(0.3), 2.0, 2 * np.cosh(0.3)),
    "array": (symad.trace(halves, [(2,)]), Q, np.sinh(Q), V, V * np.cosh(Q)),
    "symbol": (symad.trace(lambda u: halves(u), [ArraySymbol("u", (2,))]), Q, np.sinh(Q), V, V * np.cosh(Q)),
    "vector of scalars": (
        symad.trace(sp.cosh(x) + sp.cosh(y), inputs=[[x, y]]), Q, np.sinh(Q), V, V * np.cosh(Q),
    ),
    "named vector": (
        symad.trace(sp.cosh(x) + sp.cosh(y), inputs={"q": [x, y]}), Q, np.sinh(Q), V, V * np.cosh(Q),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["graph", "fast", "plain", "packed"])
@pytest.mark.parametrize("name", ONE_INPUT)
def test_one_input_is_bare(name, mode):
    f, point, slope, direction, product = ONE_INPUT[name]
    made = {"graph": lambda g: g, "packed": lambda g: lower(g, packed=True)}.get(
        mode, lambda g: lower(g, style=mode)
    )
    for call, values, wanted in (
        (symad.gradient(f), (point,), slope),
        (symad.gradient(f, mode="forward"), (point,), slope),
        (symad.hvp(f), (point, direction), product),
        (symad.hvp(f, mode="reverse-over-forward"), (point, direction), product),
    ):
        if mode == "packed":  # a vector (1,) stands for one number
            values, wanted = map(np.atleast_1d, values), np.atleast_1d(wanted)
        got = made(call)(*values)
        assert not isinstance(got, tuple) and np.shape(got) == np.shape(wanted)
        np.testing.assert_allclose(got, wanted, rtol=1e-14)


def test_structures_of_one_input_are_kept():
    by_name = symad.trace(lambda p: halves(p["a"]) * p["b"], [{"a": (2,), "b": ()}])
    got = symad.gradient(by_name)({"a": Q, "b": 3.0})
    assert got.keys() == {"a", "b"} and np.allclose(got["a"], 3 * np.sinh(Q))
    assert np.isclose(got["b"], np.cosh(Q).sum())
    of_class = symad.trace(lambda p: halves(p.first) * p.second, [Pair(Q, 1.0)])
    found = symad.gradient(of_class)(Pair(Q, 3.0))
    assert isinstance(found, Pair) and np.allclose(found.first, 3 * np.sinh(Q))


def test_tuples_stay_where_wrt_is_a_list_or_the_inputs_are_several():
    f, g = symad.trace(halves, [(2,)]), x * sp.cosh(y)
    for wrt in ([0], ["v"], (f.inputs[0],)):
        (slope,) = symad.gradient(f, wrt)(Q)
        (product,) = symad.hvp(f, wrt)(Q, V)
        assert np.allclose(slope, np.sinh(Q)) and np.allclose(product, V * np.cosh(Q))
    assert symad.gradient(g)(2.0, 0.0) == (1.0, 0.0) and symad.gradient(g, [y])(2.0, 0.0) == (0.0,)
    assert symad.gradient(g, y)(2.0, 0.0) == 0.0 and symad.hvp(g)(2.0, 0.0, 1.0, 1.0) == (0.0, 2.0)
    assert symad.gradient(sp.Integer(3))() == ()  # no input: no entry
    value, slope = symad.value_and_gradient(f)(Q)
    assert value == np.cosh(Q).sum() and np.array_equal(slope, symad.gradient(f)(Q))


@pytest.mark.parametrize("method", ["trust-ncg", "Newton-CG", "trust-krylov"])
def test_scipys_minimize_takes_value_gradient_and_products_as_they_are(method):
    f = symad.trace(lambda q: np.sum(np.cosh(q - 1)) + (q[0] - q[1]) ** 2, [(2,)])
    for packed in (False, True):
        both, product = (lower(g, packed=packed) for g in (symad.value_and_gradient(f), symad.hvp(f)))
        found = minimize(both, Q, jac=True, hessp=product, method=method)
        assert found.success and np.allclose(found.x, 1, atol=1e-4)


def test_candidates_for_one_input_may_be_bare_or_not():
    f = symad.trace(halves, [(2,)])
    for right in (np.sinh, lambda v: (np.sinh(v),), symad.gradient(f), symad.gradient(f, [0])):
        assert symad.verify(f, None, gradient=right).status in ("measured", "proved")
    assert symad.verify(f, None, gradient=np.cosh).status == "refuted"
    assert symad.verify(sp.cosh(x), None, gradient=[sp.sinh(x)]).status == "proved"


# ---- the arguments by name ------------------------------------------------------------------------


def test_a_dict_names_the_arguments_of_formulas_and_of_functions():
    kernel = lower(symad.gradient(x * sp.cosh(y), "q", inputs={"q": [x, y], "c": sp.Symbol("c")}))
    np.testing.assert_array_equal(kernel(q=[2.0, 0.0], c=1.0), [1, 0])
    n = sp.Symbol("n", integer=True, positive=True)

    def model(W, X):
        return np.sum(X @ W)

    for inputs in ({"W": (3,), "X": (n, 3)}, {"X": (n, 3), "W": (3,)}):
        graph = symad.trace(model, inputs=inputs)
        assert [a.name for a in graph.arguments] == ["W", "X"]
        np.testing.assert_array_equal(symad.gradient(graph, "W")(X=np.eye(3), W=np.ones(3)), np.ones(3))


@pytest.mark.parametrize("wrong", [{"W": (3,)}, {"W": (3,), "Y": (3,)}, {}, {"W": (3,), 1: ()}])
def test_a_dict_that_does_not_fit_the_function_is_named(wrong):
    def model(W, X):
        return W * X

    with pytest.raises(TraceError, match=r"model\(W, X\)"):
        symad.trace(model, inputs=wrong)
    with pytest.raises(TraceError, match=r"b of .* by position"):
        symad.trace(lambda a, *, b: a * b, inputs={"a": (), "b": ()})


def test_groups_without_a_name_are_named_after_their_inputs():
    a = sp.symbols("a b c d e f")
    named = [[sp.Symbol("v1"), sp.Symbol("v2")], list(a[:2]), list(a[2:]), a]
    names = [symad.trace(sum(g), inputs=[g]).arguments[0].name for g in named]
    assert names == ["v", "a_b", "c_d_e_f", "a_to_f"]
