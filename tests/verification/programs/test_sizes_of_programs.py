"""Programs are called at two choices of symbolic sizes, and may return sparse matrices."""

import numpy as np
import pytest
import scipy.sparse
import sympy as sp

import symad

N = sp.Symbol("n", integer=True, positive=True)
CUBES = symad.trace(lambda x: (x**3).sum(), [(N,)])


@pytest.mark.parametrize("rest", [0, 1])
def test_a_program_that_is_wrong_for_odd_or_even_sizes_is_refuted(rest):
    certificate = symad.verify(CUBES, gradient=lambda x: 3 * x**2 * (1 + (len(x) % 2 == rest)), hostile=False)
    assert certificate.status == "refuted"
    assert len({entry.name for entry in certificate.entries if entry.status == "refuted"}) == 1


def test_a_right_program_is_measured_at_all_choices_of_sizes():
    certificate = symad.verify(CUBES, gradient=lambda x: 3 * x**2, hostile=False)
    assert certificate.status == "measured"
    assert [entry.name for entry in certificate.entries] == [f"∂f/∂x at n = {n}" for n in (3, 2, 1, 33)]


@pytest.mark.parametrize(
    ("wrong", "size"), [(lambda n: n == 1, 1), (lambda n: n > 4, 33), (lambda n: n > 32, 33)]
)
def test_a_program_that_is_wrong_for_one_element_or_for_many_is_refuted(wrong, size):
    certificate = symad.verify(CUBES, gradient=lambda x: 3 * x**2 * (1 + wrong(len(x))), hostile=False)
    assert [e.name for e in certificate.entries_of("refuted")] == [f"∂f/∂x at n = {size}"]


M = sp.Symbol("m", integer=True, positive=True)
ROWS = symad.trace(lambda a: (a.sum(axis=1) ** 2).sum(), [(N, M)])


@pytest.mark.parametrize("axis", [0, 1])
def test_a_program_that_is_wrong_where_one_size_alone_is_one_is_refuted(axis):
    """As code is that drops axes of length 1: matrices of one row or of one column are not square."""

    def slope(a):
        wrong = a.shape[axis] == 1 < a.shape[1 - axis]
        return np.repeat(2 * a.sum(axis=1)[:, None], a.shape[1], axis=1) * (1 + wrong)

    assert symad.verify(ROWS, gradient=slope, hostile=False).status == "refuted"


SIZES = {
    "no value at 1": (
        lambda x: np.sqrt(((x - x.mean()) ** 2).mean()),
        lambda x: (x - x.mean()) / len(x) / x.std(),
    ),
    "no slice at 1": (
        lambda x: (x[1:] * x[:-1]).sum(),
        lambda x: np.r_[x[1:], 0] + np.r_[0, x[:-1]] + np.full(len(x), np.nan if len(x) < 2 else 0.0),
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", SIZES)
def test_programs_are_called_at_one_only_if_the_model_has_a_value_there(name):
    f, gradient = SIZES[name]
    certificate = symad.verify(symad.trace(f, [(N,)]), gradient=gradient, hostile=False)
    assert [entry.name for entry in certificate.entries] == [f"∂f/∂x at n = {n}" for n in (3, 2, 33)]
    assert certificate.status == "measured"


@pytest.mark.thorough
def test_costly_models_are_called_at_smaller_sizes():
    f = symad.trace(
        lambda A: np.linalg.slogdet(A @ A.T)[1], [(N, sp.Symbol("d", integer=True, positive=True))]
    )
    certificate = symad.verify(f, gradient=lambda A: 2 * np.linalg.solve(A @ A.T, A), hostile=False)
    assert certificate.status == "measured"
    assert certificate.entries[-1].name == "∂f/∂A at d = 7, n = 5"


def test_a_program_that_fails_at_some_sizes_is_undecided():
    certificate = symad.verify(CUBES, gradient=lambda x: 3 * x**2 + 0 * x[2], hostile=False)
    assert certificate.status == "undecided"
    assert "IndexError" in str(certificate)


def test_a_numpy_function_that_fails_is_not_called_with_arrays_of_jax():
    """JAX reads the last element where a position is too large."""
    pytest.importorskip("jax.numpy")
    certificate = symad.verify(CUBES, gradient=lambda x: 3 * x**2 + 0 * x[7], hostile=False)
    assert certificate.status == "undecided"
    assert "IndexError" in str(certificate)


def test_a_sparse_hessian_is_measured_and_a_wrong_one_refuted():
    f = symad.trace(lambda x: (x[1:] * x[:-1] ** 2).sum(), [(4,)])

    def sparse(x, factor=2.0):
        return scipy.sparse.diags_array(
            [2 * x[:-1], 2 * np.r_[x[1:], 0], factor * x[:-1]], offsets=[-1, 0, 1]
        )

    assert symad.verify(f, hessian=sparse, hostile=False).status == "measured"
    assert symad.verify(f, hessian=lambda x: sparse(x, 2.1), hostile=False).status == "refuted"
