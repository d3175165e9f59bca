"""Functions of matrices in the checker: their derivatives, numerically, and what is proved by them."""

from dataclasses import replace
from random import Random

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.models.generative import gaussian_process, kernels
from symad.verification.checker.proofs import replay
from symad.verification.checker.terms import Refused, Terms, of_matrix
from symad.verification.coq.checker_rules import MATRICES_NOT_IN_COQ
from symad.verification.proof.checksum import digest_of
from symad.verification.proof.with_proofs import claims_of

VALUES = {
    "inverse": lambda a: a**-1,
    "cholesky": lambda a: mpmath.cholesky(a),
    "log det": lambda a: mpmath.matrix([[mpmath.log(mpmath.det(a))]]),
}


def test_functions_of_matrices_are_said_not_to_be_in_coq():
    assert MATRICES_NOT_IN_COQ.keys() == VALUES.keys()


def value_of(term, at):
    """The value of a term at given values of variables, functions of matrices by mpmath."""
    args = [value_of(a, at) for a in term.args]
    if term.kind in ("number", "variable"):
        return at[term] if term in at else mpmath.mpf(term.data.numerator) / term.data.denominator
    if term.kind == "sum":
        return mpmath.fsum(args)
    if term.kind == "product":
        return mpmath.fprod(args)
    (i, j, *elements), n = args, int(np.sqrt(len(args) - 2))
    return VALUES[term.data](mpmath.matrix(n, n) + mpmath.matrix(np.reshape(elements, (n, n)).tolist()))[
        int(i), int(j)
    ]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("n", [2, 3])
def test_the_derivative_of_each_function_is_that_of_its_values(name, n):
    """Along a symmetric direction, as the Cholesky factor is of a symmetric matrix."""
    terms, rng = Terms(), Random(1)
    a = [terms.made("variable", k) for k in range(n * n)]
    with mpmath.workdps(40):
        half = mpmath.matrix([[rng.uniform(-1, 1) for _ in range(n)] for _ in range(n)])
        start, way = half * half.T + mpmath.eye(n), half + half.T
        at = dict(zip(a, start, strict=True))
        places = [(i, j) for i in range(n) for j in range(i + 1)] if name != "log det" else [(0, 0)]
        for i, j in places:
            slopes = [of_matrix(name, i, j, a, k) for k in range(n * n)]
            found = mpmath.fsum(value_of(s, at) * d for s, d in zip(slopes, way, strict=True))
            exact = mpmath.diff(lambda t, i=i, j=j: VALUES[name](start + t * way)[i, j], 0)
            assert mpmath.almosteq(found, exact, 1e-20)


def _quadratic(n):
    A, b = sp.MatrixSymbol("A", n, n), sp.MatrixSymbol("b", n, 1)
    return b.T * A.inv() * b, A


REPLAYED = {
    "an inverse": lambda: symad.check(*_quadratic(2)),
    "a log determinant": lambda: symad.check(sp.log(sp.Determinant(sp.MatrixSymbol("A", 3, 3)))),
    "a Gaussian process": lambda: symad.check(
        gaussian_process.log_likelihood(kernels.variance * kernels.rbf()).at(
            {gaussian_process.N: 2, gaussian_process.D: 1}
        ),
        wrt=["theta"],
    ),
}


@pytest.mark.parametrize("name", REPLAYED)
def test_derivatives_of_functions_of_matrices_are_replayed(name):
    certificate = REPLAYED[name]()
    assert certificate.checked, str(certificate)


WRONG = {
    "no transpose": lambda A, B: -(B @ B),
    "the sign": lambda A, B: (B @ B).T,
    "one inverse": lambda A, B: -B.T,
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_neighbours_of_the_derivative_of_an_inverse_are_refuted(name):
    f = symad.trace(lambda A: np.trace(np.linalg.inv(A)), [(3, 3)])
    right = symad.trace(lambda A: -(np.linalg.inv(A) @ np.linalg.inv(A)).T, [(3, 3)])
    wrong = symad.trace(lambda A: WRONG[name](A, np.linalg.inv(A)), [(3, 3)])
    assert symad.verify(f, gradient=right).checked
    assert symad.verify(f, gradient=wrong).status == "refuted"


def test_changed_steps_are_refused():
    f = symad.trace(lambda A: np.exp(2 * np.linalg.inv(A).sum()), [(2, 2)])
    certificate, refused = symad.check(f), 0
    claims = claims_of(certificate.comparisons)
    for proof in certificate.proofs:
        for k, (number, rule, data) in enumerate(proof.steps):
            steps = (*proof.steps[:k], (number + 1, rule, data), *proof.steps[k + 1 :])
            with pytest.raises(Refused):
                replay(claims, replace(proof, steps=steps, digest=digest_of(proof.goals, steps)))
            refused += 1
    assert refused
