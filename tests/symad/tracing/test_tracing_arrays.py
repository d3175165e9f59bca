"""Array expressions: tensor products, contractions, diagonals, permutations, against NumPy."""

import numpy as np
import pytest
import sympy
from sympy import ImmutableDenseNDimArray, Lambda, MatrixSymbol, Symbol, cos, sin
from sympy.tensor.array.expressions import (
    ArrayAdd,
    ArrayContraction,
    ArrayDiagonal,
    ArrayElementwiseApplyFunc,
    ArraySymbol,
    ArrayTensorProduct,
    PermuteDims,
    Reshape,
)
from sympy.tensor.array.expressions.array_expressions import OneArray, ZeroArray

import symad
from symad.errors import ShapeError, TraceError

k, m, n = sympy.symbols("k m n", integer=True, positive=True)
t, u = sympy.symbols("t u", real=True)
A, B = MatrixSymbol("A", n, m), MatrixSymbol("B", m, k)
X, x = MatrixSymbol("X", n, n), MatrixSymbol("x", n, 1)
T, U = ArraySymbol("T", (n, m, k)), ArraySymbol("U", (n, m, k))
W = ArraySymbol("W", (n, n, n, m))
SIZES = {n: 3, m: 2, k: 4}


def arrays_for(graph):
    """Values of an array of its own for each input."""
    rng = np.random.default_rng(5)
    return [
        rng.uniform(-1, 1, [int(sympy.S(d).subs(SIZES)) for d in getattr(s, "shape", ())])
        for s in graph.inputs
    ]


def by_einsum(spec, *names):
    return lambda **given: np.einsum(spec, *[given[name] for name in names])


# Each case: an expression, and the function of the named values that NumPy says it is.
CASES = {
    "tensor product": (ArrayTensorProduct(A, T), by_einsum("ij,klm->ijklm", "A", "T")),
    "matrix product": (
        ArrayContraction(ArrayTensorProduct(A, B), (1, 2)),
        by_einsum("ij,jk->ik", "A", "B"),
    ),
    "sum over an axis": (ArrayContraction(T, (1,)), by_einsum("ijk->ik", "T")),
    "sum over everything": (ArrayContraction(T, (0,), (1,), (2,)), by_einsum("ijk->", "T")),
    "trace of two axes": (ArrayContraction(W, (0, 2)), by_einsum("ijil->jl", "W")),
    "three axes at once": (ArrayContraction(W, (0, 1, 2)), by_einsum("iiil->l", "W")),
    "diagonal": (ArrayDiagonal(W, (0, 2)), by_einsum("ijil->jli", "W")),
    "two diagonals": (
        ArrayDiagonal(ArrayTensorProduct(A, X, A), (0, 2), (1, 5)),
        by_einsum("ij,ik,lj->klij", "A", "X", "A"),
    ),
    "diagonal of a contraction": (
        ArrayDiagonal(ArrayContraction(ArrayTensorProduct(X, T, A), (1, 2), (3, 6)), (0, 2)),
        by_einsum("ij,jkl,ik->li", "X", "T", "A"),
    ),
    "contraction of a diagonal": (
        ArrayContraction(ArrayDiagonal(ArrayTensorProduct(X, X, X), (1, 2)), (0, 3)),
        by_einsum("ij,jk,li->klj", "X", "X", "X"),
    ),
    "permutation": (PermuteDims(T, [2, 0, 1]), by_einsum("ijk->kij", "T")),
    "permuted contraction": (
        PermuteDims(ArrayContraction(ArrayTensorProduct(T, X), (0, 4)), [1, 2, 0]),
        by_einsum("ijk,li->klj", "T", "X"),
    ),
    "contraction of a permutation": (
        ArrayContraction(PermuteDims(ArrayTensorProduct(T, X), [3, 0, 1, 2, 4]), (0, 1)),
        by_einsum("ijk,il->jkl", "T", "X"),
    ),
    "chain of four": (
        ArrayContraction(ArrayTensorProduct(X, A, B, B, A), (1, 2), (3, 4), (5, 7), (6, 9)),
        by_einsum("ij,jk,kl,ml,nm->in", "X", "A", "B", "B", "A"),
    ),
    "a number in front": (ArrayTensorProduct(t, T), lambda T, t: t * T),
    "a diagonal SymPy converts wrongly": (
        ArrayDiagonal(
            ArrayTensorProduct(
                sympy.Identity(n), MatrixSymbol("x", n, 1), X, MatrixSymbol("Y", n, n)
            ),
            (1, 2),
            (5, 6),
        ),
        by_einsum("ij,jk,lm,mo->iklojm", "I", "x", "X", "Y"),
    ),
    "sum": (ArrayAdd(T, U), lambda T, U: T + U),
    "sum and difference of symbols": (T - 2 * U, lambda T, U: T - 2 * U),
    "zeros and ones": (ArrayAdd(T, ZeroArray(n, m, k), OneArray(n, m, k)), lambda T: T + 1),
    "reshape": (Reshape(T, (n * k, m)), lambda T: T.reshape(12, 2)),
    "a function head": (ArrayElementwiseApplyFunc(sin, T), lambda T: np.sin(T)),
    "a Lambda": (
        ArrayElementwiseApplyFunc(Lambda(u, cos(u) * t + u**2), T),
        lambda T, t: np.cos(T) * t + T**2,
    ),
    "an element": (T[0, 1, 2], lambda T: T[0, 1, 2]),
    "the last element": (T[n - 1, m - 1, k - 1] ** 2, lambda T: T[-1, -1, -1] ** 2),
    "a function of elements": (
        sin(T[0, 0, 0]) * T[1, 1, 1],
        lambda T: np.sin(T[0, 0, 0]) * T[1, 1, 1],
    ),
    "an explicit array": (
        ArrayContraction(
            ArrayTensorProduct(ImmutableDenseNDimArray([1, t, 3]), MatrixSymbol("v", 3, 2)), (0, 1)
        ),
        lambda t, v: np.array([1, t, 3]) @ v,
    ),
}


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
    """f = Σ T_ijk x_i x_j x_k has the Hessian of its symmetrised tensor."""
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
