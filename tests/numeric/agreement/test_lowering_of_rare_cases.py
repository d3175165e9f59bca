"""Rare cases are lowered: reversed and cut loops, sparse recurrences, empty arrays, huge integers."""

from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.errors import ShapeError
from symad.numeric import lower

RNG = np.random.default_rng(0)
n = sp.Symbol("n", integer=True, positive=True)
x, y = sp.symbols("x y", real=True)

STEPS = {
    "tanh": lambda h, u: np.tanh(h + u),
    "maximum": lambda h, u: np.maximum(h, u),
    "where": lambda h, u: np.where(u > 0, h * u, h),
    "without the state": lambda h, u: h * 0 + u,
}


@pytest.mark.parametrize("memory", ["all", 2, "sqrt", "recompute", "binomial"])
@pytest.mark.parametrize("shape", [(), (2,)])
@pytest.mark.parametrize("step", STEPS)
def test_sparse_jacobians_of_recurrences(step: str, shape: tuple[int, ...], memory: Any) -> None:
    values = [RNG.normal(size=shape), RNG.normal(size=(5, *shape))]
    for make in (functions.fold, functions.scan):
        graph = symad.trace(lambda a, u: make(STEPS[step], a, u, memory=memory), [v.shape for v in values])  # noqa: B023
        sparse = symad.jacobian(graph, sparse=True)
        dense = symad.jacobian(symad.trace(lambda a, u: make(STEPS[step], a, u), [v.shape for v in values]))  # noqa: B023
        right = dense(*values)
        for made in (sparse(*values), lower(sparse)(*values)):
            np.testing.assert_allclose(made.toarray(), right, rtol=1e-13, atol=1e-15)


def test_a_sparse_jacobian_with_two_moving_operands() -> None:
    values = [RNG.normal(size=(3, 3)), RNG.normal(size=(4, 3))]

    def f(W: Any, u: Any, **policy: Any) -> Any:
        return functions.fold(lambda h, u_t: np.tanh(W @ h + u_t), np.zeros(3), u, **policy)

    dense = symad.jacobian(symad.trace(f, [(3, 3), (4, 3)]))(*values)
    sparse = symad.jacobian(symad.trace(lambda W, u: f(W, u, memory=2), [(3, 3), (4, 3)]), sparse=True)
    np.testing.assert_allclose(sparse(*values).toarray(), dense, rtol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_hessians_of_recurrences_read_backwards(shape: tuple[int, ...], backend: str) -> None:
    def f(a: Any, u: Any) -> Any:
        return np.sum(np.sin(np.flip(functions.scan(lambda h, u_t: np.tanh(h + u_t), a, u), 0)))

    values = [RNG.normal(size=shape), RNG.normal(size=(4, *shape))]
    graph = symad.hessian(symad.trace(f, [v.shape for v in values]))
    np.testing.assert_allclose(lower(graph, backend)(*values), graph(*values), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("backend", ["numpy", "c", "runs"])
def test_signs_of_what_numpy_computes(backend: str) -> None:
    graph = symad.value_and_gradient(symad.trace(lambda a: np.abs(np.hypot(a, 1.0)), [()]))
    value, slope = lower(graph, backend)(0.3)
    assert value == pytest.approx(np.sqrt(1.09), rel=1e-15)
    assert slope == pytest.approx(0.3 / np.sqrt(1.09), rel=1e-15)


@pytest.mark.parametrize("derivative", [symad.hessian, symad.jacobian])
def test_sparse_derivatives_of_unknown_size_name_the_size(derivative: Any) -> None:
    graph = symad.trace(lambda a: (a[1:] * a[:-1]).sum(), [(n,)])
    with pytest.raises(ShapeError, match=r"numbers for the dimensions n of .*at\("):
        derivative(graph, sparse=True)


@pytest.mark.parametrize("backend", ["graph", "numpy", "c"])
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_log_sum_exp_of_nothing(shape: tuple[int, ...], backend: str) -> None:
    graph = symad.trace(lambda z: functions.logsumexp(z, axis=-1), [shape])
    with np.errstate(divide="ignore"):
        made = (graph if backend == "graph" else lower(graph, backend))(np.zeros(shape))
        right = np.log(np.exp(np.zeros(shape)).sum(-1))
    np.testing.assert_allclose(made, right, rtol=1e-15)


@pytest.mark.parametrize("backend", ["graph", "numpy", "c", "runs"])
def test_integers_beyond_the_floats(backend: str) -> None:
    big = sp.Integer(10) ** 400
    for f, right in ((x * big / (big / 10 + y), 10.0), ((big + x) / (big - y), 1.0), (big + x, np.inf)):
        graph = symad.trace(f, (x, y))
        made = (graph if backend == "graph" else lower(graph, backend))(*[1.0] * len(graph.inputs))
        assert made == right
