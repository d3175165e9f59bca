"""Special functions by Arb: mpmath's values to 50 digits, and no result where the value is not real."""

import mpmath
import pytest
import sympy as sp

from symad.facts.functions import FACTS
from symad.numbers.function_values import by_arb, mpmath_function
from symad.numbers.number_domains import HighPrecision
from symad.sympy_functions import probability
from symad.sympy_functions import special_functions as special
from symad.sympy_functions.elliptic_moments import elliptic_moment

POINTS = ["0", "1", "-1", "2", "0.5", "-0.5", "0.999", "1.3", "-1.7", "3.25", "12.5", "-20.25", "41.0078125"]
ORDERS = ["0", "1", "2", "3", "0.5", "-1.25", "2.75"]
TWO = {
    sp.besselj, sp.bessely, sp.besseli, sp.besselk, sp.polygamma, sp.expint, sp.uppergamma, sp.lowergamma,
    sp.polylog,
}  # fmt: skip


HALVES = ("0.5", "1.3", "2.75")
SEVERAL = {
    sp.betainc: [(a, b, *ends) for a in HALVES for b in HALVES for ends in (("0", "0.5"), ("0.25", "1"))],
    special.hyp0f1: [(b, z) for b in HALVES for z in ("-3.25", "0.5", "12.5")],
    special.hyp1f1: [(a, b, z) for a in ("-1.7", "0.5") for b in HALVES for z in ("-3.25", "0.5", "12.5")],
    special.hyp2f1: [
        (a, "0.5", c, z) for a in ("-1.7", "1.3") for c in HALVES for z in ("-3.25", "0.5", "0.999")
    ],
    special.owens_t: [(h, a) for h in ("0", "-1.7", "3.25") for a in ("-0.5", "1", "12.5")],
    special.voigt_profile: [(x, s, g) for x in ("0", "-1.7", "12.5") for s in HALVES for g in HALVES],
    probability.gammainc: [(s, x) for s in HALVES for x in ("0.5", "3.25", "41.0078125")],
}
AMPLITUDES = [(z, m) for z in ("0.5", "-1.3", "1.5") for m in ("0.5", "-1.7", "0.999")]
SEVERAL |= {
    sp.elliptic_f: AMPLITUDES,
    sp.elliptic_e: [*AMPLITUDES, ("0.5",), ("-1.7",)],
    sp.elliptic_pi: [("0.25", *pair) for pair in AMPLITUDES] + [("-1.7", "0.5"), ("0.25", "0.75")],
    elliptic_moment: [
        (*orders, "0.25", *pair)
        for orders in (("0", "0", "1"), ("1", "0", "1"), ("1", "1", "0"), ("2", "1", "1"), ("2", "3", "0"))
        for pair in AMPLITUDES
    ],
}
SEVERAL |= {
    sp.betainc_regularized: SEVERAL[sp.betainc], probability.gammaincc: SEVERAL[probability.gammainc],
    special.voigt_dispersion: SEVERAL[special.voigt_profile],
}  # fmt: skip


def arguments(head):
    if head in SEVERAL:
        return SEVERAL[head]
    if head is sp.polygamma:
        return [(n, x) for n in ("0", "1", "2", "5") for x in POINTS]
    if head in TWO:
        return [(n, x) for n in ORDERS[::2] for x in POINTS[::2]]
    return [(x,) for x in POINTS] + ([("2", "0.5"), ("3.5", "1.25")] if head is sp.zeta else [])


@pytest.mark.sample(30, without=("polylog", "besselk"))
@pytest.mark.parametrize("head", [h for h, row in FACTS.items() if row.slow], ids=lambda h: h.__name__)
def test_values_are_mpmaths(head):
    told = 0
    for texts in arguments(head):
        with mpmath.workdps(50):
            values = tuple(map(mpmath.mpf, texts))
            found = by_arb(head, values)
        if found is None:
            continue
        told += 1
        with mpmath.workdps(80):
            expected = mpmath_function(head)(*values)
            assert mpmath.im(expected) == 0, texts
            error = abs(found - mpmath.re(expected))
            assert error <= mpmath.mpf(10) ** -49 * abs(expected), (texts, found, expected)
    assert told >= 3


def test_what_is_not_real_is_not_told():
    with mpmath.workdps(50):
        for head, values in {
            sp.besselk: (0, -1), sp.gamma: (-2,), sp.loggamma: (-0.5,), sp.erfinv: (2,), sp.polylog: (2, 3),
            sp.digamma: (0,), sp.zeta: (1,), sp.bessely: (0, 0), sp.Ci: (-1,), sp.li: (1,),
        }.items():  # fmt: skip
            assert by_arb(head, tuple(map(mpmath.mpf, values))) is None
            assert not mpmath.isfinite(HighPrecision().apply(head, *values)) or head in (sp.polylog,)


def test_no_digit_is_lost_to_cancellation():
    """Close to a zero of J₀ the value is small, and known to all digits all the same."""
    with mpmath.workdps(50):
        zero = mpmath.besseljzero(0, 1)
        found = by_arb(sp.besselj, (mpmath.mpf(0), zero))
    with mpmath.workdps(150):
        expected = mpmath.besselj(0, zero)
        assert abs(found - expected) <= mpmath.mpf(10) ** -49 * abs(expected)
