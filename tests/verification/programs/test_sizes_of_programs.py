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


def test_a_right_program_is_measured_at_both_choices_of_sizes():
    certificate = symad.verify(CUBES, gradient=lambda x: 3 * x**2, hostile=False)
    assert certificate.status == "measured"
    assert [entry.name for entry in certificate.entries] == ["∂f/∂x at n = 3", "∂f/∂x at n = 2"]


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
