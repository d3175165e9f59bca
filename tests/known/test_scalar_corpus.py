"""Printed derivatives of scalar functions are certified, and false ones refuted with a witness."""

import pytest

import symad
from tests.known.scalar_functions import FUNCTIONS

FALSE = [(case, wrong) for case in FUNCTIONS for wrong in case.wrong]


def verified(case, claimed):
    return symad.verify(case.expression, case.wrt, gradient=claimed, seed=1)


def test_the_corpus_is_large():
    assert len(FUNCTIONS) >= 100
    assert len({case.name for case in FUNCTIONS}) == len(FUNCTIONS)


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case.name)
def test_a_printed_derivative_is_certified(case):
    certificate = verified(case, case.claimed)
    assert certificate.status in ("proved", "tested"), str(certificate)
    assert certificate.bound < 2.0**-64


@pytest.mark.sample(120)
@pytest.mark.parametrize(("case", "wrong"), FALSE, ids=lambda value: getattr(value, "name", ""))
def test_a_false_derivative_is_refuted(case, wrong):
    certificate = verified(case, wrong)
    assert certificate.status == "refuted", str(certificate)
    assert certificate.witness.left != certificate.witness.right
