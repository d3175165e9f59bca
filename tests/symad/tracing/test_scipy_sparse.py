"""Products of SciPy's sparse arrays with traced values: values, patterns of derivatives, refusals."""

import numpy as np
import pytest
import scipy.sparse as ss

import symad
from symad.errors import ShapeError, TraceError
from symad.numeric import lower

A = np.array([[1.0, 0, 0, 2], [0, 0, -3, 0], [0, 0, 0, 0], [4, 5, 0, 0], [0, 0, 0, 0.5]])
SQUARE = np.diag([1.0, 2, 3, 4]) + np.diag([-1.0, -1, -1], 1)
FORMATS = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]
CLASSES = [
    *(getattr(ss, f"{name}_{kind}") for name in FORMATS for kind in ("array", "matrix")),
]

PRODUCTS = {
    "@": (lambda S: lambda u: S @ u, (4,)),
    "dot": (lambda S: lambda u: S.dot(u), (4,)),
    "of a matrix": (lambda S: lambda u: S @ u, (4, 3)),
    "of a column": (lambda S: lambda u: S @ u, (4, 1)),
    "T @": (lambda S: lambda u: S.T @ u, (5,)),
    "from the left": (lambda S: lambda u: u @ S, (5,)),
    "rows from the left": (lambda S: lambda u: u @ S, (2, 5)),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_products(kind, name):
    made, shape = PRODUCTS[name]
    graph = symad.trace(made(kind(A)), [shape])
    u = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_allclose(graph(u), made(A)(u), rtol=1e-14)
    units = np.eye(u.size).reshape(-1, *shape)
    jacobian = symad.jacobian(graph, sparse=True)(u)
    wanted = np.stack([made(A)(e).ravel() for e in units], 1)  # linear
    np.testing.assert_array_equal(jacobian.toarray(), wanted)
    assert jacobian.nnz == np.count_nonzero(wanted)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_a_heat_equation_has_the_pattern_of_its_matrix(backend):
    n = 30
    laplace = ss.diags_array([np.ones(n - 1), -2 * np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1])
    graph = symad.trace(lambda u: laplace @ np.sin(u) + u**2, [(n,)])
    u = np.linspace(0, 1, n)
    jacobian = symad.jacobian(graph, sparse=True)
    found = lower(jacobian, backend=backend)(u)
    assert found.nnz == 3 * n - 2
    np.testing.assert_allclose(found.toarray(), laplace.toarray() * np.cos(u) + np.diag(2 * u), rtol=1e-14)
    np.testing.assert_allclose(lower(graph, backend=backend)(u), laplace @ np.sin(u) + u**2, atol=1e-14)


def test_matrices_that_the_function_makes_and_lists_beside_them():
    def f(u):
        y = np.zeros(4)
        y[1] = u[0]
        steps = ss.kron(ss.eye_array(2), ss.diags_array(np.ones(2)))
        numbers = steps @ np.ones(4)  # no traced value takes part
        return (ss.csr_matrix(SQUARE) * u + ss.csr_array(A).T @ np.ones(5)) @ (ss.eye(4) @ y) + (
            ss.coo_array(np.array([0.0, 1.0, 0, 2.0])) @ u
        ) * np.sum(numbers) * np.sum(ss.eye(2) @ [u[2], u[3]])

    u = np.array([0.5, -1.0, 2.0, 3.0])
    y = np.array([0, u[0], 0, 0])
    wanted = (SQUARE @ u + A.T @ np.ones(5)) @ y + (u[1] + 2 * u[3]) * 4 * (u[2] + u[3])
    assert symad.trace(f, [(4,)])(u) == pytest.approx(wanted, rel=1e-14)


def test_explicit_zeros_and_doubled_entries_are_right():
    rows, columns = np.array([0, 0, 1]), np.array([1, 1, 0])
    doubled = ss.coo_array((np.array([1.0, 2.0, 0.0]), (rows, columns)), shape=(2, 2))
    graph = symad.trace(lambda u: doubled @ u, [(2,)])
    assert np.array_equal(graph(np.array([5.0, 7.0])), [21, 0])


@pytest.mark.parametrize(
    ("f", "shape", "told"),
    [
        (lambda u: ss.csr_array(A) @ u, (3,), r"shape \(5, 4\) and a traced value of shape \(3,\)"),
        (lambda u: ss.csr_array(SQUARE) + u, (4, 4), "A.toarray"),
        (lambda u: u - ss.csr_array(SQUARE), (4, 4), "A.toarray"),
        (lambda u: ss.csr_array(SQUARE) * u, (4,), "sparse array of traced values"),
        (lambda u: ss.csr_matrix(SQUARE).multiply(u), (4,), "sparse array of traced values"),
        (lambda u: ss.csr_matrix(SQUARE) * u, (), "sparse array of traced values"),
        (lambda u: np.dot(ss.csr_array(SQUARE), u), (4,), "A @ x"),
    ],
)
def test_what_is_refused_names_the_matrix_and_the_line(f, shape, told):
    with pytest.raises((ShapeError, TraceError), match=told) as caught:
        symad.trace(f, [shape])
    assert "test_scipy_sparse.py" in str(caught.value) and "is not made for" not in str(caught.value)


def test_nothing_is_left_in_scipys_classes():
    before = {name: vars(ss.csr_array.__mro__[-2]).get(name) for name in ("__mul__", "multiply")}
    matrix = ss.csr_array(SQUARE)
    with pytest.raises(TraceError):
        symad.trace(lambda u: matrix.multiply(u), [(4,)])
    assert {n: vars(ss.csr_array.__mro__[-2]).get(n) for n in ("__mul__", "multiply")} == before
    assert (matrix @ np.ones(4)).tolist() == SQUARE.sum(1).tolist()
