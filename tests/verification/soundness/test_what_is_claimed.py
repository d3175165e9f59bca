"""Sizes, symbols and rules of users: a certificate claims only what was established."""

import pickle

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import SavingError
from tests.pairs.users import function_of_a_user

x, y = sp.symbols("x y", real=True)
n = sp.Symbol("n", integer=True, positive=True)
A = sp.MatrixSymbol("A", n, n)


class Right(sp.Function):
    """exp, with its derivative."""

    def fdiff(self, argindex=1):
        return Right(self.args[0])

    def _eval_evalf(self, prec):
        return sp.exp(self.args[0])._eval_evalf(prec)


class Wrong(sp.Function):
    """exp, with the derivative of sin."""

    def fdiff(self, argindex=1):
        return sp.cos(self.args[0])

    def _eval_evalf(self, prec):
        return sp.exp(self.args[0])._eval_evalf(prec)


class Mute(sp.Function):
    """A function that has a derivative and no values."""

    def fdiff(self, argindex=1):
        return 2 * self.args[0]


class Second(sp.Function):
    """x y, with a wrong derivative in y alone."""

    def fdiff(self, argindex=1):
        return self.args[1] if argindex == 1 else 2 * self.args[0]

    def _eval_evalf(self, prec):
        return (self.args[0] * self.args[1])._eval_evalf(prec)


def test_a_rule_that_contradicts_its_function_is_refuted():
    for f, name in ((Wrong(x) * y, "Wrong"), (Second(x, y), "Second in argument 2")):
        certificate = symad.check(f)
        assert certificate.status == "refuted"
        (entry,) = (e for e in certificate.entries_of("refuted") if e.name.startswith("the derivative"))
        assert entry.name == f"the derivative of {name}"
        assert entry.witness is not None
    assert symad.verify(Wrong(x), x, gradient=sp.cos(x)).status == "refuted"
    assert symad.verify(Wrong(x), x, value=Wrong(x)).status == "proved"  # no derivative is claimed


@pytest.mark.parametrize("place", [5, 30, -1000])
def test_a_rule_that_is_wrong_for_large_arguments_alone_is_refuted(place):
    far = sp.Piecewise((1, x > place), (0, True)) if place > 0 else sp.Piecewise((1, x < place), (0, True))
    made = function_of_a_user(sp.atan(x), 1 / (1 + x**2) + far)
    assert symad.check(made(x) * y).status == "refuted"


def given(certificate):
    """Whether all is proved, but for rules that were sampled; the headline says so."""
    rest = [e for e in certificate.entries if not e.reason.startswith("given the rule of")]
    return (
        certificate.status == "measured"
        and {e.status for e in rest} == {"proved"}
        and ("MEASURED (proved, given the rule of" in repr(certificate))
    )


def test_a_rule_that_agrees_with_its_function_is_given():
    assert given(symad.check(Right(x) * y))


def test_a_rule_of_a_function_without_values_is_an_assumption_in_the_headline():
    certificate = symad.check(Mute(x))
    assert certificate.status == "measured"
    assert "assumes the derivative of Mute" in repr(certificate)
    assert symad.verify(Mute(x), x, gradient=2 * x).status == "measured"
    for carried in (certificate.to_json, lambda: pickle.dumps(certificate)):
        with pytest.raises(SavingError, match=r"function Mute cannot be saved.*register_function"):
            carried()  # without its function it would be another claim


def test_a_registered_derivative_is_compared_too():
    good = symad.register_function("fourth", lambda v: v**4, [lambda v: 4 * v**3], mpmath=lambda v: v**4)
    bad = symad.register_function("fifth", lambda v: v**5, [lambda v: 4 * v**4], mpmath=lambda v: v**5)
    floats = symad.register_function("sixth", lambda v: v**6 * np.float64(1), [lambda v: 6 * v**5])
    assert given(symad.check(good(x)))
    assert symad.check(bad(x)).status == "refuted"
    assert symad.check(floats(x)).status == "measured"


def test_a_rule_is_compared_where_its_function_has_no_more_digits():
    """tanh 2x is 1 to 100 digits from x = 58 on; the rule is wrong from x = 30 on."""

    def known(v):
        return mpmath.tanh(2 * v)

    right = symad.register_function("saturated", known, [lambda v: 2 - 2 * sp.tanh(2 * v) ** 2], mpmath=known)
    wrong = symad.register_function(
        "saturated_and_more", known,
        [lambda v: 2 - 2 * sp.tanh(2 * v) ** 2 + sp.Piecewise((0, v < 30), (1, True))], mpmath=known,
    )  # fmt: skip
    assert given(symad.check(right(x)))
    certificate = symad.check(wrong(x))
    assert certificate.status == "refuted"


def test_chosen_sizes_are_measured_and_never_called_exact():
    certificate = symad.equal((1 + (n - 2) * (n - 3)) * A, A)
    assert certificate.status != "proved"
    assert certificate.status != "tested"
    assert "exact" not in repr(certificate)
    same = symad.equal((A + A.T) * A, A * A + A.T * A)
    assert same.status == "proved"
    assert "for all n" in same.entries[0].claim


def test_sizes_that_were_not_chosen_are_looked_at():
    """Equal for n = 3 and for n = 2, and for no other."""
    certificate = symad.equal((1 + (n - 2) * (n - 3)) * A, A)
    assert certificate.status == "refuted"
    assert "at n = " in certificate.entries[0].claim


def test_symbols_are_themselves_and_not_their_names():
    positive = sp.Symbol("x", positive=True)
    certificate = symad.equal(positive, sp.Abs(x))
    assert certificate.status == "refuted"
    assert set(certificate.witness.point) == {"x (positive)", "x (real)"}
    assert symad.equal(sp.Abs(x), positive).status == "refuted"
    assert symad.equal(sp.Abs(positive), positive).status == "proved"
    assert symad.equal(x**2, sp.Symbol("x") ** 2).status == "proved"  # every symbol is real


def test_what_is_promised_to_be_zero_is_zero():
    z = sp.Symbol("z", zero=True)
    assert symad.equal(z + x, x).status == "proved"
    assert symad.equal(z * y + x, x).status == "proved"
    assert symad.verify(x * y + z, x, gradient=y + z).status == "proved"
    assert symad.equal(z + x, x + 1).status == "refuted"


@pytest.mark.parametrize("status", ["measured", "proved"])
def test_the_order_of_levels(status):
    order = ("refuted", "undecided", "measured", "tested", "proved")
    certificate = symad.check(Mute(x) if status == "measured" else x**2)
    assert certificate.status == status
    worst = min((e.status for e in certificate.entries), key=order.index)
    assert worst == status
