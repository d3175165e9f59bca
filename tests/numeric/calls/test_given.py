"""Functions of fixed data: work on the data alone is not repeated in calls; against NumPy and PyTorch."""

import numpy as np
import pytest
import sympy

import symad
from symad import functions
from symad.errors import LoweringError
from symad.numeric import given, lower

RNG = np.random.default_rng(11)
N, P = 40, 3
X, Y, W = RNG.normal(size=(N, P)), RNG.normal(size=N), RNG.normal(size=P)


def traced(f, *shapes):
    return symad.trace(f, inputs=list(shapes))


def held_sizes(fixed):
    return sorted(np.size(a) for a in fixed.held)


def squares(w, X, y):
    return 0.5 * np.sum((X @ w - y) ** 2)


def test_least_squares_needs_the_gram_matrix_only():
    step = symad.gradient(traced(squares, (P,), (N, P), (N,)), wrt=[0])
    fast = given(step, {1: X, 2: Y})
    assert held_sizes(fast) == [P, P * P]
    assert np.allclose(fast(W)[0], X.T @ (X @ W - Y), rtol=1e-12)
    assert str(N) not in fast.source


def test_value_and_gradient_and_hessian():
    graph = traced(squares, (P,), (N, P), (N,))
    both = given(symad.value_and_gradient(graph, wrt=[0]), {1: X, 2: Y})
    value, gradient = both(W)
    assert np.isclose(value, 0.5 * np.sum((X @ W - Y) ** 2), rtol=1e-12)
    assert np.allclose(gradient, X.T @ (X @ W - Y), rtol=1e-12)
    assert max(held_sizes(both)) == P * P
    hessian = given(symad.hessian(graph, wrt=[0]), {1: X, 2: Y})
    assert np.allclose(hessian(W), X.T @ X, rtol=1e-12) and held_sizes(hessian) == [P * P]


def test_autoregression_in_scalar_weights_and_slices():
    """Σ_k w_k x_{t−k}: slices of the weights become one matrix product."""
    order, n = 4, 60
    x, w, b = RNG.normal(size=n), RNG.normal(size=order), 0.3

    def loss(w, b, x):
        predicted = b
        for k in range(order):
            predicted = predicted + w[k] * x[order - 1 - k : n - 1 - k]
        return np.mean((x[order:] - predicted) ** 2)

    step = symad.value_and_gradient(traced(loss, (order,), (), (n,)), wrt=[0, 1])
    fast = given(step, {2: x})
    windows = np.stack([x[order - 1 - k : n - 1 - k] for k in range(order)], 1)
    r = windows @ w + b - x[order:]
    expected = (np.mean(r**2), 2 * windows.T @ r / len(r), 2 * np.mean(r))
    for found, right in zip(fast(w, b), expected, strict=True):
        assert np.allclose(found, right, rtol=1e-11)
    assert max(held_sizes(fast)) == order**2
    assert len(fast.source.splitlines()) < len(lower(step).source.splitlines()) + 10


def test_several_outputs_and_offsets():
    V, c, T = RNG.normal(size=(P, 2)), RNG.normal(size=2), RNG.normal(size=(N, 2))
    graph = traced(lambda V, c, X, T: np.mean((X @ V + c - T) ** 2), (P, 2), (2,), (N, P), (N, 2))
    fast = given(symad.gradient(graph, wrt=[0, 1]), {2: X, 3: T})
    r = X @ V + c - T
    gradients = fast(V, c)
    assert np.allclose(gradients[0], X.T @ r / N, rtol=1e-11)
    assert np.allclose(gradients[1], r.sum(0) / N, rtol=1e-11)
    assert max(held_sizes(fast)) < N


def test_parameters_that_are_put_together():
    """Concatenated, stacked and sliced parameters."""
    u, v = RNG.normal(size=2), RNG.normal(size=1)

    def loss(u, v, X, y):
        w = np.concatenate([u[::-1], v])
        return np.sum((X @ np.stack([w, 2 * w], axis=1) - y.reshape(N, 1)) ** 2)

    fast = given(symad.gradient(traced(loss, (2,), (1,), (N, P), (N,)), wrt=[0, 1]), {2: X, 3: Y})
    w = np.array([u[1], u[0], v[0]])
    whole = 2 * X.T @ (X @ w - Y) + 4 * X.T @ (2 * X @ w - Y)
    assert np.allclose(fast(u, v)[0], whole[[1, 0]], rtol=1e-11)
    assert np.allclose(fast(u, v)[1], whole[2:], rtol=1e-11)
    assert max(held_sizes(fast)) < N


def test_functions_that_are_not_linear_stay_as_they_are():
    """Of a logistic loss only Xᵀy leaves the calls, of a network nothing but what it reads."""
    torch = pytest.importorskip("torch")
    labels = (Y > 0).astype(float)
    graph = traced(lambda w, X, y: np.sum(functions.softplus(X @ w) - y * (X @ w)), (P,), (N, P), (N,))
    fast = given(symad.gradient(graph, wrt=[0]), {1: X, 2: labels})
    assert np.allclose(fast(W)[0], X.T @ (1 / (1 + np.exp(-X @ W)) - labels), rtol=1e-12)

    A, B = RNG.normal(size=(P, 4)), RNG.normal(size=(4, 2))
    T = RNG.normal(size=(N, 2))
    shapes = [(P, 4), (4, 2), (N, P), (N, 2)]
    network = traced(lambda A, B, X, T: np.mean((np.tanh(X @ A) @ B - T) ** 2), *shapes)
    fast = given(symad.gradient(network, wrt=[0, 1]), {2: X, 3: T})
    tensors = [torch.tensor(a, requires_grad=True) for a in (A, B)]
    torch.mean((torch.tanh(torch.tensor(X) @ tensors[0]) @ tensors[1] - torch.tensor(T)) ** 2).backward()
    for found, tensor in zip(fast(A, B), tensors, strict=True):
        assert np.allclose(found, tensor.grad.numpy(), rtol=1e-11)


def test_hessians_hold_no_seeds():
    """Unit seeds times data are data too, but far larger than the data."""
    h, shapes = 5, [(P, 5), (5,), (5,), (N, P)]
    graph = traced(lambda A, b, v, X: np.sum((np.tanh(X @ A + b) @ v) ** 2), *shapes)
    hessian = symad.hessian(graph, wrt=[0, 1, 2])
    point = [RNG.normal(size=s) for s in shapes[:3]]
    fast = given(hessian, {3: X})
    assert np.allclose(fast(*point), hessian(*point, X), rtol=1e-11, atol=1e-12)
    assert max(held_sizes(fast)) <= N * max(P * P, P * h)


def test_distances_of_data_are_held():
    """Of a kernel matrix with a live width the squared distances are data."""

    def loss(a, width, X):
        square = np.sum(X**2, axis=1)
        K = np.exp(-(square[:, None] + square[None, :] - 2 * X @ X.T) / width)
        return np.sum((K @ a) ** 2)

    a, width = RNG.normal(size=N), 1.5
    fast = given(symad.gradient(traced(loss, (N,), (), (N, P)), wrt=[0]), {2: X})
    distances = ((X[:, None] - X[None]) ** 2).sum(-1)
    K = np.exp(-distances / width)
    assert np.allclose(fast(a, width)[0], 2 * K @ (K @ a), rtol=1e-11)
    assert " @ " in fast.before.source and N * P not in held_sizes(fast)


def test_symbolic_sizes_and_single_precision():
    n, p = sympy.symbols("n p", integer=True, positive=True)
    step = symad.gradient(traced(squares, (p,), (n, p), (n,)), wrt=[0])
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        fast = given(step, {1: X, 2: Y}, dtype=dtype)
        (found,) = fast(W)
        assert found.dtype == dtype
        assert np.allclose(found, X.T @ (X @ W - Y), rtol=tolerance)


def test_names_and_errors():
    w, x = sympy.Symbol("w", real=True), sympy.Symbol("x", real=True)
    fast = given(w**2 * sympy.sin(x), {"x": 0.5})
    assert np.isclose(fast(3.0), 9 * np.sin(0.5)) and "sin(" not in fast.source
    with pytest.raises(LoweringError, match="different inputs"):
        given(w * x, {x: 1.0, "x": 2.0})
    with pytest.raises(LoweringError, match="nothing"):
        given(w * x, {})
    with pytest.raises(ValueError, match="shape"):
        given(traced(squares, (P,), (N, P), (N,)), {1: X[:, 0], 2: Y})


def test_inputs_of_a_structure_are_given_by_their_names():
    loss = symad.trace(lambda p, X: ((X @ p["w"] - p["t"]) ** 2).sum(), [{"w": (2,), "t": (3,)}, (3, 2)])
    X, w, t = np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0]), np.ones(3)
    fast = given(symad.gradient(loss, "p['w']"), {"p['t']": t, "X": X})
    np.testing.assert_allclose(fast(w), 2 * X.T @ (X @ w - t))


@pytest.mark.parametrize(("rows", "largest"), [(64, 64 * 8), (4096, 8 * 8)])
def test_few_rows_are_faster_than_their_gram_matrix(rows, largest):
    X, y, w = RNG.normal(size=(rows, 8)), RNG.normal(size=(rows, 1)), RNG.normal(size=(8, 1))
    loss = traced(lambda w, X, y: np.sum((X @ w - y) ** 2), (8, 1), (rows, 8), (rows, 1))
    fast = given(symad.value_and_gradient(loss, wrt=[0]), {1: X, 2: y})
    assert max(held_sizes(fast)) == largest
    value, gradient = fast(w)
    assert np.isclose(value, np.sum((X @ w - y) ** 2), rtol=1e-11)
    assert np.allclose(gradient, 2 * X.T @ (X @ w - y), rtol=1e-10)


def test_two_linear_layers_read_products_of_data_alone():
    X, y, w = RNG.normal(size=(4096, 8)), RNG.normal(size=(4096, 8)), RNG.normal(size=(2, 8, 8)) / 3
    loss = traced(lambda v, w, X, y: np.sum((X @ v @ w - y) ** 2), (8, 8), (8, 8), (4096, 8), (4096, 8))
    fast = given(symad.gradient(loss, wrt=[0, 1]), {2: X, 3: y})
    assert max(held_sizes(fast)) == 8 * 8
    r = 2 * (X @ w[0] @ w[1] - y)
    for found, wanted in zip(fast(*w), (X.T @ r @ w[1].T, (X @ w[0]).T @ r), strict=True):
        assert np.allclose(found, wanted, rtol=1e-9, atol=1e-9)
