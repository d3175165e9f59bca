"""Array expressions: tensor products, contractions, diagonals, permutations, against NumPy."""

import numpy as np
import pytest
import sympy
from sympy import Symbol, sin
from sympy.tensor.array.expressions import (
    ArrayContraction,
    ArraySymbol,
    ArrayTensorProduct,
    Reshape,
)

import symad
from symad.errors import ShapeError, TraceError
from tests.symad.tracing.array_cases import CASES, T, U, X, k, m, n, x

SIZES = {n: 3, m: 2, k: 4}


def arrays_for(graph):
    """Values of an array of its own for each input."""
    rng = np.random.default_rng(5)
    return [
        rng.uniform(-1, 1, [int(sympy.S(d).subs(SIZES)) for d in getattr(s, "shape", ())])
        for s in graph.inputs
    ]


def named_values(graph):
    values = dict(zip(map(str, graph.inputs), arrays_for(graph), strict=True))
    return values


def reference(name, values):
    identity = {"I": np.eye(3)} if name == "a diagonal SymPy converts wrongly" else {}
    return CASES[name][1](**values, **identity)


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    graph = symad.trace(CASES[name][0])
    values = named_values(graph)
    got = graph(*values.values())
    np.testing.assert_allclose(got, reference(name, values), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", CASES)
def test_jacobians(name, mode):
    """Against central differences of NumPy's function; every case is smooth and of order one."""
    graph = symad.jacobian(symad.trace(CASES[name][0]), mode=mode)
    values = named_values(graph)
    columns = []
    for key, value in values.items():
        for index in np.ndindex(np.shape(value)):
            sides = []
            for step in (1e-6, -1e-6):
                moved = np.array(value)
                moved[index] += step
                sides.append(np.ravel(reference(name, {**values, key: moved})))
            columns.append((sides[0] - sides[1]) / 2e-6)
    np.testing.assert_allclose(graph(*values.values()), np.array(columns).T, atol=1e-8)


def test_tensor_products_are_never_formed():
    expression, _ = CASES["chain of four"]
    assert all(node.ndim <= 2 for node in symad.trace(expression).nodes)


def test_vectors_are_contracted_first():
    chain = ArrayContraction(ArrayTensorProduct(X, X, X, x), (1, 2), (3, 4), (5, 6))
    shapes = [node.shape for node in symad.trace(chain).nodes if node.args]
    assert shapes == [(n, 1)] * 3


def test_second_derivatives():
    """f = Σ T_ijk x_i x_j x_k has the Hessian of its symmetrized tensor."""
    cube, v = ArraySymbol("C", (n, n, n)), ArraySymbol("v", (n,))
    f = ArrayContraction(ArrayTensorProduct(cube, v, v, v), (0, 3), (1, 4), (2, 5))
    graph = symad.hessian(f, v)
    rng = np.random.default_rng(0)
    values = {"v": rng.uniform(-1, 1, 3), "C": rng.uniform(-1, 1, (3, 3, 3))}
    tensor = values["C"]
    symmetric = sum(
        tensor.transpose(p)
        for p in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    )
    expected = np.einsum("ijk,k->ij", symmetric, values["v"])
    np.testing.assert_allclose(graph(*[values[str(s)] for s in graph.inputs]), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        (T * U, TraceError, r"applies Mul to numbers, but T has shape \(n, m, k\)"),
        (T**2, TraceError, "applies Pow to numbers.*ArrayElementwiseApplyFunc"),
        (sin(T), TraceError, "applies sin to numbers"),
        (sin(2 * T), TraceError, "applies sin to numbers"),
        (T + 1, TraceError, "applies Add to numbers"),
        (T + ArraySymbol("V", (n, m, m)), ShapeError, r"T \(n, m, k\), V \(n, m, m\)|V .*T"),
        (Reshape(T, (n, m)), ShapeError, "reshape"),
    ],
    ids=lambda value: str(value)[:25],
)
def test_bad_input(expression, error, message):
    with pytest.raises(error, match=message):
        symad.trace(expression)


def test_index_that_is_an_input():
    i = Symbol("i", integer=True)
    graph = symad.trace(T[i, 0, 1], [T, i])
    value = np.arange(24.0).reshape(3, 2, 4)
    assert graph(value, 2) == value[2, 0, 1]
