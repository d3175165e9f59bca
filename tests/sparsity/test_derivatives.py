"""Sparse Jacobians and Hessians: every mode against the dense derivative and against SymPy."""

import tracemalloc

import numpy as np
import pytest
import sympy
from scipy.sparse import issparse
from scipy.sparse.linalg import splu

import symad
from symad.errors import DerivativeError
from symad.numeric import lower
from symad.sparsity import (
    PatternError,
    color,
    hessian_sparsity,
    jacobian_sparsity,
    sparse_hessian,
    sparse_jacobian,
)
from tests.sparsity.cases import band, entries_of

JACOBIAN_MODES = ["auto", "forward", "reverse", "mixed"]
HESSIAN_MODES = [
    "forward-over-reverse",
    "reverse-over-forward",
    "reverse-over-reverse",
    "forward-over-forward",
]


def brusselator_rates(u, v):
    def laplacian(w):
        return sum(np.roll(w, s, a) for s in (1, -1) for a in (0, 1)) - 4 * w

    return 1 + u**2 * v - 4.4 * u + 10 * laplacian(u), 3.4 * u - u**2 * v + 10 * laplacian(v)


def arrow(x):
    """First row and first column full, and the diagonal."""
    return np.concatenate([np.sum(x**2)[None], x[0] * np.exp(x[1:])])


JACOBIANS = {
    "Brusselator": (brusselator_rates, [(4, 4), (4, 4)]),
    "arrow": (arrow, [(12,)]),
    "matrix product": (lambda x, b: np.tanh(x @ x.T) + b, [(4, 3), (4,)]),
    "elementwise": (lambda x, a: np.sin(a * x) / x, [(7,), ()]),
    "reversed": (lambda x: x[::-1] * x, [(6,)]),
    "linear": (lambda x: 2 * x[1:] - x[:-1], [(6,)]),
    "conditional": (lambda x: np.where(x > 0.5, x**2, np.sin(x)) * x[0], [(6,)]),
    "maxima": (lambda x: np.maximum(x[1:], x[:-1]), [(6,)]),
    "constant": (lambda x: 0 * x + 3.0, [(4,)]),
}


def points(graph, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.2, 0.9, n.shape) if n.shape else rng.uniform() for n in graph.input_nodes]


def is_canonical(matrix):
    rows = np.split(matrix.indices, matrix.indptr[1:-1])
    return issparse(matrix) and matrix.format == "csr" and all((np.diff(r) > 0).all() for r in rows)


@pytest.mark.parametrize("mode", JACOBIAN_MODES)
@pytest.mark.parametrize("name", JACOBIANS)
def test_jacobians_in_every_mode(name, mode):
    f, shapes = JACOBIANS[name]
    graph = symad.trace(f, shapes)
    sparse = sparse_jacobian(graph, mode=mode)
    dense = symad.jacobian(graph)
    for seed in (0, 1):
        point = points(graph, seed)
        value = sparse(*point)
        assert is_canonical(value)
        np.testing.assert_allclose(value.toarray(), dense(*point), rtol=1e-13, atol=1e-13)
    assert value.nnz <= jacobian_sparsity(graph).nnz


@pytest.mark.parametrize("mode", ["forward", "reverse", "mixed"])
def test_the_structure_is_the_detected_one_and_stays(mode):
    graph = symad.trace(brusselator_rates, [(4, 4), (4, 4)])
    sparse, pattern = sparse_jacobian(graph, mode=mode), jacobian_sparsity(graph)
    zero = [np.zeros((4, 4)), np.zeros((4, 4))]  # many entries vanish here and stay stored
    for point in (points(graph), zero):
        value = sparse(*point)
        assert np.array_equal(value.indptr, pattern.indptr)
        assert np.array_equal(value.indices, pattern.indices)


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def grid_energy(u):
    """Minimal surface area with zero boundary, plus exp(u)."""
    padded = np.pad(u, 1)
    dx, dy = padded[1:, :-1] - padded[:-1, :-1], padded[:-1, 1:] - padded[:-1, :-1]
    return np.sum(np.sqrt(1 + dx**2 + dy**2)) + np.sum(np.exp(u))


def separable_with_mean(x, a):
    return np.sum(a * np.cos(x)) + np.sum(x) ** 2


def bilinear(x, y):
    return np.sum(x * y**2)


HESSIANS = {
    "Rosenbrock": (rosenbrock, [(11,)]),
    "grid energy": (grid_energy, [(5, 4)]),
    "dense": (separable_with_mean, [(6,), (6,)]),
    "two inputs": (bilinear, [(5,), (5,)]),
    "linear": (lambda x: np.sum(3 * x), [(4,)]),
}


@pytest.mark.parametrize("mode", HESSIAN_MODES)
@pytest.mark.parametrize("name", HESSIANS)
def test_hessians_in_all_four_modes(name, mode):
    f, shapes = HESSIANS[name]
    graph = symad.trace(f, shapes)
    sparse, dense = sparse_hessian(graph, mode=mode), symad.hessian(graph)
    for seed in (0, 1):
        point = points(graph, seed)
        value = sparse(*point)
        assert is_canonical(value)
        np.testing.assert_allclose(value.toarray(), dense(*point), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("mode", HESSIAN_MODES)
def test_hessians_of_scalar_expressions_against_sympy(mode):
    x = sympy.symbols("x:6", real=True)
    f = sum(x[i] ** 2 * sympy.sin(x[i + 1]) for i in range(5)) + x[0] * x[5]
    point = np.linspace(0.1, 1.1, 6)
    wanted = np.array(sympy.hessian(f, x).subs(dict(zip(x, point, strict=True))), float)
    value = sparse_hessian(f, list(x), mode=mode)(*point)
    assert value.nnz == np.count_nonzero(np.array(sympy.hessian(f, x)))
    np.testing.assert_allclose(value.toarray(), wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("kind", ["star", "acyclic", "column"])
@pytest.mark.parametrize("mode", HESSIAN_MODES)
def test_hessians_by_a_given_coloring(kind, mode):
    graph = symad.trace(grid_energy, [(4, 5)])
    coloring = color(hessian_sparsity(graph), kind)
    sparse = sparse_hessian(graph, mode=mode, coloring=coloring)
    assert f"{coloring.num_colors} Hessian-vector products" in sparse.report
    point = points(graph)
    np.testing.assert_allclose(sparse(*point).toarray(), symad.hessian(graph)(*point), rtol=1e-12, atol=1e-12)


def test_the_public_functions_take_sparse():
    graph = symad.trace(rosenbrock, [(8,)])
    point = points(graph)
    hessian = symad.hessian(graph, sparse=True)(*point)
    np.testing.assert_allclose(hessian.toarray(), symad.hessian(graph)(*point), rtol=1e-13)
    jacobian = symad.jacobian(lambda_graph := symad.trace(arrow, [(8,)]), sparse=True)(*point)
    np.testing.assert_allclose(jacobian.toarray(), symad.jacobian(lambda_graph)(*point))


def test_an_arrow_takes_three_products_in_mixed_mode():
    graph = symad.trace(arrow, [(40,)])
    mixed = sparse_jacobian(graph, mode="mixed")
    assert "2 forward products and 1 reverse product:" in mixed.report
    assert "40 forward products" in sparse_jacobian(graph, mode="forward").report
    report = sparse_jacobian(graph).report  # chosen by itself, and the reason told
    assert "2 forward products and 1 reverse product:" in report
    assert "least of column 40, row 60, bidirectional 3.5, in forward products" in report


def test_the_choice_of_a_side_and_its_reason():
    wide = symad.trace(lambda x: np.stack([np.sum(np.sin(x)), np.prod(x)]), [(30,)])
    report = sparse_jacobian(wide).report
    assert "2 reverse products" in report
    assert "least of column 30, row 3, " in report
    assert "in forward products" in report
    coloring = color(np.ones((2, 30)), "row")
    assert sparse_jacobian(wide, coloring=coloring).report.endswith("the coloring given")


def test_stencils_need_no_seeds_and_say_so():
    graph = symad.trace(rosenbrock, [(20,)])
    assert sparse_hessian(graph).report == "sparse 20×20, 58 entries in 4 arrays, without seeds"
    scalars = sympy.symbols("x:4")
    report = sparse_hessian(sum(s**3 for s in scalars), list(scalars)).report
    assert report == "sparse 4×4, 4 entries, each an expression of its own"


def test_a_matrix_of_zeros():
    value = sparse_hessian(symad.trace(lambda x: np.sum(x), [(3,)]))(np.ones(3))
    assert value.shape == (3, 3)
    assert value.nnz == 0


def test_exact_and_symbolic_values_give_dense_arrays():
    from fractions import Fraction

    x = sympy.symbols("x:3", real=True)
    sparse = sparse_hessian(x[0] ** 2 * x[1] + x[2] ** 3, list(x))
    value = sparse(Fraction(1, 2), Fraction(3), Fraction(1, 7))
    assert value.tolist() == [[6, 1, 0], [1, 0, 0], [0, 0, Fraction(6, 7)]]
    assert sparse(*x).tolist() == [[2 * x[1], 2 * x[0], 0], [2 * x[0], 0, 0], [0, 0, 6 * x[2]]]


def test_derivatives_and_batches_of_sparse_matrices_are_dense():
    graph = symad.trace(rosenbrock, [(4,)])
    point, direction = points(graph)[0], np.array([1.0, -2.0, 0.5, 3.0])
    pushed = symad.pushforward(sparse_hessian(graph))
    _, dot = pushed(point, direction)
    _, wanted = symad.pushforward(symad.hessian(graph))(point, direction)
    np.testing.assert_allclose(dot, wanted, rtol=1e-12)
    several = np.stack([point, point + 1, point * 2])
    batch = symad.vmap(sparse_hessian(graph))(several)
    singles = [symad.hessian(graph)(p) for p in several]
    np.testing.assert_allclose(batch, singles, rtol=1e-12)


def test_results_feed_sparse_solvers():
    graph = symad.trace(grid_energy, [(6, 6)])
    (point,) = points(graph)
    matrix = sparse_hessian(graph)(point)
    gradient = symad.gradient(graph)(point).ravel()
    step = splu(matrix.tocsc()).solve(gradient)
    np.testing.assert_allclose(matrix @ step, gradient, rtol=1e-9, atol=1e-12)


# Patterns and colorings of the user


def test_a_given_pattern_is_used_when_it_holds_every_entry():
    graph = symad.trace(lambda x: x[1:] * x[:-1], [(5,)])
    wide = np.ones((4, 5), bool)
    value = sparse_jacobian(graph, pattern=wide)(*points(graph))
    assert value.nnz == 20
    np.testing.assert_allclose(value.toarray(), symad.jacobian(graph)(*points(graph)))


def test_a_pattern_that_is_too_small_is_refused_with_an_entry():
    graph = symad.trace(lambda x: x[1:] * x[:-1], [(5,)])
    small = np.eye(4, 5, dtype=bool)
    with pytest.raises(PatternError, match=r"misses entry \(0, 1\), which is 0\.\d+ at a random point"):
        sparse_jacobian(graph, pattern=small)
    with pytest.raises(PatternError, match=r"shape \(4, 4\), but the derivative of .* \(4, 5\)"):
        sparse_jacobian(graph, pattern=np.ones((4, 4)))
    with pytest.raises(PatternError, match="misses entry"):
        sparse_hessian(symad.trace(rosenbrock, [(5,)]), pattern=np.eye(5))


def test_a_coloring_of_a_pattern_that_is_too_small_is_refused():
    graph = symad.trace(grid_energy, [(3, 3)])
    point_by_point = color(np.eye(9), "star")
    with pytest.raises(PatternError, match=r"misses entry \(0, 1\), which is -?\d"):
        sparse_hessian(graph, coloring=point_by_point)
    with pytest.raises(PatternError, match=r"shape \(4, 4\), but the derivative of"):
        sparse_hessian(graph, coloring=color(np.eye(4), "star"))


def test_a_pattern_of_a_hessian_need_not_be_symmetric():
    # one triangle is missing entries that the derivative has
    graph = symad.trace(grid_energy, [(3, 3)])
    whole = hessian_sparsity(graph).toarray()
    with pytest.raises(PatternError, match="misses entry"):
        sparse_hessian(graph, pattern=np.triu(whole))
    wider = whole.copy()
    wider[0, 8] = True
    value = sparse_hessian(graph, pattern=wider)(*points(graph))
    assert value.nnz == wider.sum()
    np.testing.assert_allclose(value.toarray(), symad.hessian(graph)(*points(graph)), rtol=1e-12, atol=1e-12)


def test_an_entry_that_is_zero_after_all_may_be_missing():
    # Detection cannot know that sin² + cos² is constant.
    graph = symad.trace(lambda x: np.sin(x) ** 2 + np.cos(x) ** 2 + x[0], [(3,)])
    first = np.zeros((3, 3), bool)
    first[:, 0] = True
    assert jacobian_sparsity(graph).nnz > 3
    value = sparse_jacobian(graph, pattern=first)(*points(graph))
    assert entries_of(value) == {(0, 0), (1, 0), (2, 0)}


def test_a_coloring_of_another_kind_or_mode():
    graph = symad.trace(rosenbrock, [(5,)])
    with pytest.raises(DerivativeError, match=r"kind='row' is not one of 'star', 'acyclic', 'column'"):
        sparse_hessian(graph, coloring=color(band(5, 1), "row"))
    with pytest.raises(DerivativeError, match="'sideways' is not one of 'auto', 'forward'"):
        sparse_jacobian(graph, mode="sideways")
    with pytest.raises(DerivativeError, match="'forward' is not one of 'forward-over-reverse'"):
        sparse_hessian(graph, mode="forward")


# Chunks


def coupled(x):
    """A dense row and column beside a wide band: many colors in every mode."""
    near = sum(np.roll(x, s) * x for s in range(1, 6))
    return np.tanh(near) + x[0] * np.sum(x)


@pytest.mark.parametrize("chunk", [1, 3, 4, 100])
@pytest.mark.parametrize("mode", ["forward", "reverse", "mixed"])
def test_jacobians_in_chunks(mode, chunk):
    graph = symad.trace(coupled, [(15,)])
    sparse = sparse_jacobian(graph, mode=mode, chunk=chunk)
    assert f", {chunk} products at a time" in sparse.report
    point = points(graph)
    for value in (sparse(*point), lower(sparse)(*point)):
        np.testing.assert_allclose(value.toarray(), symad.jacobian(graph)(*point), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("mode", HESSIAN_MODES)
def test_hessians_in_chunks(mode):
    graph = symad.trace(lambda x, y: np.sum(coupled(x) ** 2) + np.sum(x * y**2), [(9,), (9,)])
    sparse = symad.hessian(graph, mode=mode, sparse=True, chunk=4)
    point = points(graph)
    for value in (sparse(*point), lower(sparse)(*point)):
        np.testing.assert_allclose(value.toarray(), symad.hessian(graph)(*point), rtol=1e-11, atol=1e-11)


def test_chunks_bound_the_memory_of_generated_code():
    rng = np.random.default_rng(0)
    inward, outward = rng.normal(size=(24, 400)), rng.normal(size=(400, 24))

    def blocks(x):  # 24 colors; every lane is much wider inside than outside
        return np.tanh(x @ inward) @ outward

    graph = symad.trace(blocks, [(50, 24)])
    point = points(graph)
    peaks = {}
    for chunk in (None, 1):
        kernel = lower(symad.jacobian(graph, mode="forward", sparse=True, chunk=chunk))
        tracemalloc.start()
        value = kernel(*point)  # the first call: later ones find memory that is used again
        peaks[chunk] = tracemalloc.get_traced_memory()[1] - value.data.nbytes
        tracemalloc.stop()
    assert peaks[1] < peaks[None] / 3


@pytest.mark.parametrize("chunk", [0, -2, 1.5, True, "all"])
def test_chunks_are_positive_integers(chunk):
    graph = symad.trace(rosenbrock, [(5,)])
    for derivative in (symad.hessian, symad.jacobian):
        with pytest.raises(DerivativeError, match="not a positive integer"):
            derivative(graph, sparse=True, chunk=chunk)
        with pytest.raises(DerivativeError, match="give sparse=True"):
            derivative(graph, chunk=chunk)
