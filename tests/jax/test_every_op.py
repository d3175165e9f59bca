"""The examples of every op, and their derivatives, through JAX: the graph's values, or a named refusal."""

import warnings

import numpy as np
import pytest

import symad
from symad.errors import LoweringError
from tests.numeric.programs.plain_cases import examples_of_ops, leaves, point

jax = pytest.importorskip("jax")

EXAMPLES = examples_of_ops()
REFUSED = ("Uniform", "FoldIn", "SparseSolve", "CompressedRows")
OFTEN = ("Cholesky", "EigenVectors", "AffineScan", "TriangularSolve", "ScatterAdd", "Extreme", "MatrixPower")
"""Those that JAX computes by functions of its own."""

CASES = [
    name if name.split()[0] in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in EXAMPLES
]


@pytest.mark.sample(5)
@pytest.mark.parametrize("case", CASES)
def test_values_are_the_graphs_own(case):
    graph = EXAMPLES[case]
    values = point(graph)
    try:
        expected = leaves(graph(*values))
    except symad.errors.SymadError:
        pytest.skip("no value at these points")
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            found = leaves(symad.jax.as_function(graph)(*values))
        except LoweringError as refusal:
            assert case.split()[0] in REFUSED and "no form in JAX" in str(refusal)
            return
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one, float), np.asarray(other, float), rtol=1e-9, atol=1e-11)
