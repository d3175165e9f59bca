"""Printed matrix identities are certified, for numbers and for symbols as sizes; false ones refuted."""

import re

import pytest
import sympy

import symad
from tests.known import matrix_algebra, matrix_failures, matrix_identities, matrix_sources

pytestmark = pytest.mark.thorough

SYMBOLS = sympy.symbols("n m", integer=True, positive=True)


def derivatives(N, M):
    return [
        *matrix_identities.cookbook(N, M)[0],
        *matrix_sources.identities(N, M),
        *matrix_failures.identities(N, M),
    ]


FIXED, GENERAL = derivatives(3, 2), derivatives(*SYMBOLS)
ALGEBRA, GENERAL_ALGEBRA = matrix_algebra.equalities(2, 3), matrix_algebra.equalities(*SYMBOLS)
FALSE = [(case, wrong) for case in FIXED for wrong in case.wrong]
FALSE_FOR_SOME_SIZE = [(case, wrong) for case in GENERAL for wrong in case.wrong]


def label(case):
    return f"{case.equation}: {case.name}"


def verified(case, claimed):
    return symad.verify(case.expression, case.wrt, **{case.kind: claimed}, seed=1)


NOT_REPLAYED = {
    "a multiple", "a sum", "a product", "a Hadamard product", "an inverse", "a transpose",
    "det AXB", "det X'AX, X square", "log |det X|", "det X^3", "inverse along a line", "det X^-1",
    "X'BX along an element of X", "(tX)(tX)", "(A + tB)^-1", "det of a product", "det of an inverse",
    "det of a power", "Searle: A^-1 + B^-1",
}  # fmt: skip
"""What the checker has no rule for at symbolic sizes, elements of a matrix among them: compared at sizes."""


def holds_for_all_sizes(case, certificate):
    """By a proof that the checker replays; what it has no rule for is compared at two choices of sizes."""
    if case.name in NOT_REPLAYED:
        return certificate.status == "measured"
    return all("for all" in entry.claim and entry.checked for entry in certificate.entries)


def test_the_corpus_is_large():
    assert len(FIXED) >= 150
    assert len({label(case) for case in FIXED}) == len(FIXED)
    assert all(case.source for case in FIXED)


@pytest.mark.parametrize("case", FIXED, ids=label)
def test_a_printed_derivative_is_certified(case):
    certificate = verified(case, case.claimed)
    assert certificate.status in ("proved", "tested"), str(certificate)
    assert certificate.bound < 2.0**-64


@pytest.mark.parametrize("case", GENERAL, ids=label)
def test_a_printed_derivative_is_certified_for_all_sizes(case):
    certificate = verified(case, case.claimed)
    if case.any_size:
        assert holds_for_all_sizes(case, certificate), str(certificate)
    else:
        assert certificate.status == "measured", str(certificate)
        assert "of other sizes nothing is known" in repr(certificate)
        assert re.search(r" at (m = \d, )?n = \d", str(certificate))


@pytest.mark.parametrize(("case", "wrong"), FALSE, ids=lambda value: getattr(value, "name", ""))
def test_a_false_derivative_is_refuted(case, wrong):
    certificate = verified(case, wrong)
    assert certificate.status == "refuted", str(certificate)
    assert certificate.witness.left != certificate.witness.right


@pytest.mark.slow
@pytest.mark.parametrize(("case", "wrong"), FALSE_FOR_SOME_SIZE, ids=lambda value: getattr(value, "name", ""))
def test_a_false_derivative_is_refuted_with_symbols_as_sizes(case, wrong):
    assert verified(case, wrong).status == "refuted"


@pytest.mark.parametrize("case", matrix_identities.cookbook(*SYMBOLS)[1], ids=label)
def test_a_misprint_is_refuted_with_symbols_as_sizes(case):
    assert verified(case, case.claimed).status == "refuted"


@pytest.mark.parametrize("case", ALGEBRA, ids=label)
def test_an_equality_is_certified(case):
    certificate = symad.equal(case.left, case.right, seed=1)
    assert certificate.status in ("proved", "tested"), str(certificate)
    for wrong in case.wrong:
        assert symad.equal(case.left, wrong, seed=1).status == "refuted"


@pytest.mark.parametrize("case", GENERAL_ALGEBRA, ids=label)
def test_an_equality_is_certified_for_all_sizes(case):
    certificate = symad.equal(case.left, case.right, seed=1)
    if case.any_size:
        assert holds_for_all_sizes(case, certificate), str(certificate)
    else:
        assert certificate.status == "measured", str(certificate)
