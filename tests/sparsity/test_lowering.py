"""Sparse derivatives as generated code: the same matrices, from a file that needs no symad."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import sympy

import symad
import symad.numeric.printers.sparse
from symad.numeric import lower
from symad.sparsity import sparse_hessian, sparse_jacobian


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def grid_energy(u):
    padded = np.pad(u, 1)
    dx, dy = padded[1:, :-1] - padded[:-1, :-1], padded[:-1, 1:] - padded[:-1, :-1]
    return np.sum(np.sqrt(1 + dx**2 + dy**2)) + np.sum(np.exp(u))


@pytest.mark.parametrize("mode", ["forward-over-reverse", "reverse-over-reverse"])
@pytest.mark.parametrize(("f", "shape"), [(rosenbrock, (9,)), (grid_energy, (4, 6))])
def test_hessians(f, shape, mode):
    sparse = sparse_hessian(symad.trace(f, [shape]), mode=mode)
    kernel = lower(sparse)
    point = np.random.default_rng(0).uniform(0.1, 0.9, shape)
    wanted, value = sparse(point), kernel(point)
    assert np.array_equal(value.indices, wanted.indices)
    assert np.array_equal(value.indptr, wanted.indptr)
    np.testing.assert_allclose(value.data, wanted.data, rtol=1e-13)


@pytest.mark.parametrize("mode", ["forward", "reverse", "mixed"])
def test_jacobians(mode):
    def arrow(x):
        return np.concatenate([np.sum(x**2)[None], x[0] * np.exp(x[1:])])

    sparse = sparse_jacobian(symad.trace(arrow, [(30,)]), mode=mode)
    point = np.linspace(0.1, 0.9, 30)
    np.testing.assert_allclose(lower(sparse)(point).toarray(), sparse(point).toarray(), rtol=1e-13)


def test_hessians_of_scalars():
    x = sympy.symbols("x:5", real=True)
    sparse = sparse_hessian(sum(sympy.exp(a * b) for a, b in pairwise(x)), list(x))
    point = np.linspace(0.1, 0.9, 5)
    np.testing.assert_allclose(lower(sparse)(*point).toarray(), sparse(*point).toarray(), rtol=1e-13)


def test_a_saved_file_runs_without_symad(tmp_path):
    kernel = lower(sparse_hessian(symad.trace(rosenbrock, [(6,)])))
    kernel.save(tmp_path / "model.py")
    assert "symad" not in kernel.source.split('"""')[2]
    code = (
        "import sys, numpy, model; h = model.rosenbrock_hessian(numpy.arange(6.0));"
        "print(h.format, h.nnz, float(h.toarray().trace()), 'symad' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    trace = sum(1200.0 * k**2 - 400.0 * (k + 1) + 2 for k in range(5)) + 200.0 * 5
    assert done.stdout.split() == ["csr", "16", str(trace), "False"]


def test_results_share_their_structure_safely():
    kernel = lower(sparse_hessian(symad.trace(rosenbrock, [(6,)])))
    first = kernel(np.arange(6.0))
    with pytest.raises(ValueError, match="read-only"):
        first.indices[0] = 3
    first.data[:] = 0
    assert kernel(np.arange(6.0)).data.any()
