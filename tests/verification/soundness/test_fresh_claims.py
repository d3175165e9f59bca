"""2,600 claims whose truth is known by construction: nothing false comes out.

The claims were made without knowledge of the rules and searches of the verifier. A right one is an identity,
or a derivative written out by hand. A wrong one is a right one that was changed on an open set: by a sign, by
10⁻⁶⁰, in an interval of length 10⁻¹², at all points but dyadic ones, for labels, far from the origin.
"""

from importlib import import_module

import mpmath
import pytest
import sympy as sp

MODULES = ("scalars", "arrays", "derivatives", "loops_and_branches")


def claims_of(name):
    """All claims of one module, family by family."""
    module = import_module(f"tests.verification.soundness.claims_of_{name}")
    return [claim for family in module.FAMILIES.values() for claim in family()]


def judge(claims):
    """Ask the claims; a false verdict, or a witness that shows no difference, fails."""
    for claim in claims:
        certificate = claim.ask()
        status = certificate.status
        allowed = ("proved", "tested", "measured", "undecided") if claim.right else ("refuted", "undecided")
        assert status in allowed or (status == "measured" and not claim.shows), (claim.name, status)
        if status == "refuted" and claim.sides is not None:
            assert differs(claim.sides, certificate.witness), (claim.name, certificate.witness)


def differs(sides, witness):
    """Whether SymPy and mpmath find two expressions different at a witness; floats are exact."""
    exact = [side.xreplace({f: sp.Rational(f) for f in side.atoms(sp.Float)}) for side in sides]
    point = {s: sp.Rational(witness.point[s.name]) for side in sides for s in side.free_symbols}
    with mpmath.workdps(150):
        left, right = (sp.N(side.subs(point), 150) for side in exact)
    return left != right


def test_some_claims():
    judge(claims_of("scalars")[7::60])


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODULES)
def test_a_tenth_of_the_claims(name):
    judge(claims_of(name)[3::10])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_all_claims(name):
    claims = claims_of(name)
    assert len(claims) > {"scalars": 900, "arrays": 300, "derivatives": 1000, "loops_and_branches": 400}[name]
    judge(claims)
