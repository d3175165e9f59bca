"""A claim on a domain without an open set is empty; positive definite matrices as a domain."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import TraceError

x, y = sp.symbols("x y", real=True)
k = sp.Symbol("k", integer=True, positive=True)
A = sp.MatrixSymbol("A", 3, 3)


THIN = {
    "a point": sp.Eq(x, 1), "a line": sp.Eq(x, y), "contradiction": sp.And(x > 1, x < 0),
    "one number": sp.And(x >= 2, x <= 2), "lines": sp.Eq(sp.sin(x) * y, 0),
    "a point, in Python": lambda x, y: x == 1.0, "nothing, in Python": lambda x, y: (x > y) & (y > x),
}  # fmt: skip


@pytest.mark.parametrize("name", THIN)
@pytest.mark.parametrize("right", [True, False])
def test_nothing_is_claimed_without_an_open_set(name, right):
    candidate = 2 * x * y if right else sp.Integer(5)
    certificate = symad.verify(x**2 * y, [x], gradient=candidate, where=THIN[name], inputs=[x, y])
    assert certificate.status == "undecided"
    assert "no open set of points" in str(certificate)
    assert symad.Certificate.from_json(certificate.to_json()).status == "undecided"


OPEN = {
    "but a point": sp.Ne(x, 1), "half": x > 0, "narrow": sp.And(x > 0, x < sp.Rational(1, 1000)),
    "far": x > 10**6,
    "a band": sp.And(x > 5, y < x, y > x - 1), "a point and half": sp.Or(sp.Eq(x, 1), x > 2),
    "in Python": lambda x, y: x > y,
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_claims_on_open_sets_are_decided(name):
    where = OPEN[name]
    right = symad.verify(x**2 * y, [x], gradient=2 * x * y, where=where, inputs=[x, y])
    wrong = symad.verify(x**2 * y, [x], gradient=2 * x * y + x / 7, where=where, inputs=[x, y])
    assert (right.status in ("proved", "tested"), wrong.status) == (True, "refuted")


@pytest.mark.parametrize(
    ("f", "where"),
    [(sp.sqrt(x) * sp.log(x), sp.And(x < -1, x > -2)), (sp.log(-1 - x**2), x > 0), (x * sp.log(y), y < 0)],
)
@pytest.mark.parametrize("candidate", [sp.Integer(5), x])
def test_nothing_is_claimed_where_the_function_has_no_value(f, where, candidate):
    certificate = symad.verify(f, [x], gradient=candidate, where=where, inputs=[x, y])
    assert certificate.status == "undecided" and "no open set of points" in str(certificate)


def test_integers_stay_where_they_are():
    certificate = symad.verify(x**k, [x], gradient=k * x ** (k - 1), where=x > 0, inputs=[x, k])
    assert certificate.status != "refuted" and "no open set" not in str(certificate)


def logdet(A):
    return np.linalg.slogdet(A)[1]


@pytest.mark.thorough
@pytest.mark.parametrize("more", [sp.true, A[0, 0] > sp.Rational(1, 2)], ids=["alone", "and more"])
def test_positive_definite_matrices(more):
    where = sp.And(sp.Q.positive_definite(A), more)
    f = symad.trace(logdet, [A])
    assert symad.verify(f, gradient=lambda A: np.linalg.inv(A).T, where=where).status == "measured"
    assert symad.verify(f, gradient=lambda A: np.linalg.inv(A).T * 1.001, where=where).status == "refuted"

    def only_definite(A):
        np.linalg.cholesky(A + A.T)  # raises where the domain ends
        return np.linalg.inv(A).T

    assert symad.verify(f, gradient=only_definite, where=where).status == "measured"


def test_definite_matrices_that_cannot_be_read():
    f = symad.trace(logdet, [A])
    with pytest.raises(TraceError, match="is read of an input"):
        symad.verify(f, gradient=lambda A: np.linalg.inv(A).T, where=sp.Q.positive_definite(2 * A))
    B = sp.MatrixSymbol("B", 2, 3)
    with pytest.raises(TraceError, match="needs a square A"):
        g = symad.trace(lambda B: np.sum(B**2), [B])
        symad.verify(g, gradient=lambda B: 2 * B, where=sp.Q.positive_definite(B))


@pytest.mark.parametrize("where", [sp.true, True, np.True_, sp.Symbol("t", real=True) ** 2 >= 0])
@pytest.mark.parametrize(("slope", "status"), [(2, "proved"), (3, "refuted")])
def test_a_condition_that_always_holds_is_none(where, slope, status):
    t = sp.Symbol("t", real=True)
    assert symad.verify(t**2, t, gradient=slope * t, where=where).status == status


@pytest.mark.parametrize("where", [sp.false, False, sp.Symbol("t", real=True) ** 2 < 0])
def test_a_condition_that_never_holds_is_refused(where):
    t = sp.Symbol("t", real=True)
    with pytest.raises(TraceError, match="the claim would be about no point"):
        symad.verify(t**2, t, gradient=2 * t, where=where)
